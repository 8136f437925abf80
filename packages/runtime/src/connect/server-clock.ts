import type { Clock } from "../lifecycle/clock.ts";

const mostApartMs = 5_000;

/**
 * The control plane's time, kept by the monotonic clock: a step of the wall clock changes nothing, and a
 * machine whose clock is hours wrong still signs with times that others accept.
 */
export class ServerClock {
  readonly #clock: Clock;
  #base: number;
  /** Wall clock less monotonic clock, when the server's time was last known. */
  #apart: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#apart = clock.now() - clock.monotonic();
    this.#base = this.#apart;
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
    this.#apart = this.#clock.now() - this.#clock.monotonic();
  }

  /**
   * True when the machine's two clocks have come apart since: it slept, which stops the monotonic one, or the
   * wall clock was set. Then the server's time is to be asked for again.
   */
  get doubtful(): boolean {
    return Math.abs(this.#clock.now() - this.#clock.monotonic() - this.#apart) > mostApartMs;
  }
}
