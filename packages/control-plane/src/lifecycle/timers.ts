/** A running timer; `clear` may be called at any time. */
export interface Timer {
  clear(): void;
}

/** One-shot timers; tests hand in a fake. */
export interface Timers {
  set(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer;
}

export const systemTimers: Timers = {
  set(callback, delayMs, options) {
    const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), 2 ** 31 - 1));
    if (options?.background === true) handle.unref();
    return { clear: () => clearTimeout(handle) };
  },
};
