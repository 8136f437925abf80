import type { OpenCall } from "./open-call.ts";
import { sequenceOf } from "./request-ids.ts";

/** The calls that a provider has open, by the caller's connection and the call's number there. */
export class OpenCalls {
  readonly #byConnection = new Map<string, Map<number, OpenCall>>();
  #size = 0;
  #whenEmpty: (() => void) | undefined;

  get size(): number {
    return this.#size;
  }

  add(call: OpenCall): void {
    const { connection } = call.session.authorization;
    let calls = this.#byConnection.get(connection);
    if (calls === undefined) {
      calls = new Map();
      this.#byConnection.set(connection, calls);
    }
    calls.set(sequenceOf(call.id), call);
    this.#size += 1;
  }

  delete(call: OpenCall): void {
    const { connection } = call.session.authorization;
    const calls = this.#byConnection.get(connection);
    const sequence = sequenceOf(call.id);
    if (calls?.get(sequence) === call) calls.delete(sequence);
    if (calls?.size === 0) this.#byConnection.delete(connection);
    this.#size -= 1;
    if (this.#size === 0) this.#whenEmpty?.();
  }

  find(connection: string, requestId: Uint8Array): OpenCall | undefined {
    return this.#byConnection.get(connection)?.get(sequenceOf(requestId));
  }

  ofConnection(connection: string): readonly OpenCall[] {
    return [...(this.#byConnection.get(connection)?.values() ?? [])];
  }

  all(): readonly OpenCall[] {
    return [...this.#byConnection.values()].flatMap((calls) => [...calls.values()]);
  }

  /** Resolves when no call is open. */
  drained(): Promise<void> {
    if (this.#size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenEmpty = resolve;
    });
  }
}
