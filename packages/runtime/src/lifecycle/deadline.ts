import { type Clock, systemClock } from "./clock.ts";

/**
 * An instant on the monotonic clock by which something must be done. It is made from *remaining* time, since that
 * is what travels between processes: two wall clocks may differ by hours.
 */
export class Deadline {
  readonly #at: number;
  readonly #clock: Clock;

  private constructor(at: number, clock: Clock) {
    this.#at = at;
    this.#clock = clock;
  }

  /** A deadline `remainingMs` from now; `Infinity` never expires, zero or less already has. */
  static after(remainingMs: number, clock: Clock = systemClock): Deadline {
    if (Number.isNaN(remainingMs)) throw new RangeError("a deadline needs a number of milliseconds");
    return new Deadline(clock.monotonic() + remainingMs, clock);
  }

  static never(): Deadline {
    return NEVER;
  }

  /** Milliseconds left, never below 0; `Infinity` where there is no deadline. */
  remaining(): number {
    if (this.#at === Number.POSITIVE_INFINITY) return this.#at;
    return Math.max(0, this.#at - this.#clock.monotonic());
  }

  get expired(): boolean {
    return this.remaining() <= 0;
  }

  /** The earlier one of this and `remainingMs` from now. */
  within(remainingMs: number): Deadline {
    if (this.remaining() <= remainingMs) return this;
    return Deadline.after(remainingMs, this.#clock);
  }
}

const NEVER: Deadline = Deadline.after(Number.POSITIVE_INFINITY);
