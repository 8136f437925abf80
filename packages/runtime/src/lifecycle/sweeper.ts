import { type Clock, systemClock } from "./clock.ts";
import { systemTimers, type Timer, type Timers } from "./timers.ts";

/**
 * A look at everything, again and again for as long as there is something to look at: one timer in place of one for
 * each. It never keeps the process alive.
 */
export class Sweeper {
  readonly #intervalMs: number;
  readonly #sweep: (lateMs: number) => boolean;
  readonly #clock: Clock;
  readonly #timers: Timers;
  #timer: Timer | undefined;
  #dueAt = 0;
  #stopped = false;

  /**
   * `sweep` is told by how many ms it is late, when that is more than an interval (the process stood still), else 0;
   * it says whether there is something left to look at.
   */
  constructor(
    intervalMs: number,
    sweep: (lateMs: number) => boolean,
    { clock = systemClock, timers = systemTimers }: { readonly clock?: Clock; readonly timers?: Timers } = {},
  ) {
    this.#intervalMs = intervalMs;
    this.#sweep = sweep;
    this.#clock = clock;
    this.#timers = timers;
  }

  /** Looks from now on; no effect while it does already, or after `stop`. */
  start(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    this.#dueAt = this.#clock.monotonic() + this.#intervalMs;
    this.#timer = this.#timers.set(() => this.#onTimer(), this.#intervalMs, { background: true });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.clear();
    this.#timer = undefined;
  }

  #onTimer(): void {
    this.#timer = undefined;
    const late = this.#clock.monotonic() - this.#dueAt;
    if (this.#sweep(late > this.#intervalMs ? late : 0)) this.start();
  }
}
