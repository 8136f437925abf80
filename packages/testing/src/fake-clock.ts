/** The shape of a clock of the runtime: wall time and monotonic time, in ms. */
interface Clock {
  now(): number;
  monotonic(): number;
}

interface PendingTimer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/**
 * A clock that stands still until it is moved, with the timers that belong to it. It has the shape of the runtime's
 * `Clock` and of its `Timers`, so one instance goes into both places.
 */
export class FakeClock implements Clock {
  #now: number;
  #monotonic = 0;
  #order = 0;
  readonly #pending = new Set<PendingTimer>();

  /** @param now wall-clock ms at the start; default 2025-01-01T00:00:00Z. */
  constructor(now = 1_735_689_600_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** Number of timers that wait: 0 after everything was stopped, or something leaks. */
  get timers(): number {
    return this.#pending.size;
  }

  set(callback: () => void, delayMs: number): { clear(): void } {
    this.#order += 1;
    const timer = { at: this.#monotonic + Math.max(0, delayMs), order: this.#order, callback };
    this.#pending.add(timer);
    return { clear: () => void this.#pending.delete(timer) };
  }

  /** Moves both times on; timers fire in their order, each with the clock at its own instant. */
  advance(ms: number): void {
    const target = this.#monotonic + ms;
    for (let timer = this.#firstUntil(target); timer !== undefined; timer = this.#firstUntil(target)) {
      this.#pending.delete(timer);
      this.#moveTo(Math.max(this.#monotonic, timer.at));
      timer.callback();
    }
    this.#moveTo(target);
  }

  /** Moves both times on first and fires timers then: what code sees after the event loop was blocked. */
  stall(ms: number): void {
    this.#moveTo(this.#monotonic + ms);
    this.advance(0);
  }

  /** Sets the wall clock alone, as an administrator or NTP does. */
  setWallClock(now: number): void {
    this.#now = now;
  }

  #moveTo(monotonic: number): void {
    this.#now += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }

  #firstUntil(target: number): PendingTimer | undefined {
    let found: PendingTimer | undefined;
    for (const timer of this.#pending) {
      if (timer.at > target) continue;
      if (
        found === undefined ||
        timer.at < found.at ||
        (timer.at === found.at && timer.order < found.order)
      ) {
        found = timer;
      }
    }
    return found;
  }
}
