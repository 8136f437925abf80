/** A running timer. `clear` may be called at any time, also after it fired. */
export interface Timer {
  clear(): void;
}

/** How one-shot timers are made; tests hand in a fake that moves with a fake clock. */
export interface Timers {
  /** Calls `callback` once, no earlier than `delayMs` from now. With `background` it never keeps the process alive. */
  set(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer;
}

/** Longer delays than this overflow the platform's timer, which would then fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** Platform timers, in Node and in browsers. A delay over 24.8 days is cut to that. */
export const systemTimers: Timers = {
  set(callback, delayMs, options) {
    const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), LONGEST_DELAY_MS));
    if (options?.background === true) unref(handle);
    return { clear: () => clearTimeout(handle) };
  },
};

/** Browsers give a number, Node an object: only the latter can hold a process. */
function unref(handle: unknown): void {
  if (typeof handle !== "object" || handle === null) return;
  if ("unref" in handle && typeof handle.unref === "function") handle.unref();
}
