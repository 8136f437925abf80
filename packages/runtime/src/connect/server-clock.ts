import type { Clock } from "../lifecycle/clock.ts";

/**
 * The control plane's time, kept by the monotonic clock: a step of the wall clock changes nothing, and a
 * machine whose clock is hours wrong still signs with times that others accept.
 */
export class ServerClock {
  readonly #clock: Clock;
  #base: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#base = clock.now() - clock.monotonic();
  }

  /** Milliseconds since the epoch as the control plane counts them. */
  now(): number {
    return Math.round(this.#base + this.#clock.monotonic());
  }

  /** Milliseconds that only ever grow; unrelated to the time of day. */
  monotonic(): number {
    return this.#clock.monotonic();
  }

  /** Takes over a server time that was read between two monotonic instants; their midpoint is the guess. */
  adjust(serverTime: number, sentAt: number, receivedAt: number): void {
    this.#base = serverTime - (sentAt + receivedAt) / 2;
  }
}
