import type { Logger } from "../logging/logger.ts";
import type { ProducerSession } from "./producer-session.ts";

/** A producer that goes on so long after its session was over ignores its signal, ms. */
const zombieMs = 5_000;

/** The producers that have begun and not returned, those of sessions that are over included. */
export class RunningProducers {
  readonly #log: Logger;
  readonly #running = new Set<ProducerSession>();
  /** Of sessions that are over, with the monotonic ms of that. */
  readonly #leaving = new Map<ProducerSession, number>();
  readonly #zombies = new Set<ProducerSession>();
  #whenIdle: (() => void) | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Producers whose sessions are over. */
  get leaving(): number {
    return this.#leaving.size;
  }

  /** Of them, those that ignore their signal. */
  get zombies(): number {
    return this.#zombies.size;
  }

  add(session: ProducerSession): void {
    this.#running.add(session);
  }

  /** The session is over; its producer, if it runs, has been told. */
  leave(session: ProducerSession, now: number): void {
    if (this.#running.has(session)) this.#leaving.set(session, now);
  }

  delete(session: ProducerSession): void {
    this.#running.delete(session);
    this.#leaving.delete(session);
    this.#zombies.delete(session);
    if (this.#running.size === 0) this.#whenIdle?.();
  }

  /** Resolves when none runs. */
  idle(): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  look(now: number): void {
    for (const [session, since] of this.#leaving) {
      if (now - since < zombieMs || this.#zombies.has(session)) continue;
      this.#zombies.add(session);
      this.#log.warn(
        { action: session.served.feed.name, zombies: this.#zombies.size },
        "A producer goes on although its session is over: it ignores its signal",
      );
    }
  }
}
