import type { ProducerSession } from "./producer-session.ts";

/** The sessions of a provider, by their ids and by their consumers' connections. */
export class SessionTable {
  readonly #byId = new Map<string, ProducerSession>();
  readonly #byConnection = new Map<string, Set<ProducerSession>>();
  #whenEmpty: (() => void)[] = [];

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): ProducerSession | undefined {
    return this.#byId.get(id);
  }

  /** A copy, so that sessions may end while it is walked. */
  all(): readonly ProducerSession[] {
    return [...this.#byId.values()];
  }

  ofConnection(connection: string): readonly ProducerSession[] {
    return [...(this.#byConnection.get(connection) ?? [])];
  }

  countOf(connection: string): number {
    return this.#byConnection.get(connection)?.size ?? 0;
  }

  add(session: ProducerSession): void {
    this.#byId.set(session.idText, session);
    const sessions = this.#byConnection.get(session.connection) ?? new Set();
    this.#byConnection.set(session.connection, sessions.add(session));
  }

  delete(session: ProducerSession): void {
    this.#byId.delete(session.idText);
    const sessions = this.#byConnection.get(session.connection);
    sessions?.delete(session);
    if (sessions?.size === 0) this.#byConnection.delete(session.connection);
    if (this.#byId.size > 0) return;
    const waiting = this.#whenEmpty;
    this.#whenEmpty = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when there is no session. */
  emptied(): Promise<void> {
    if (this.#byId.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }
}
