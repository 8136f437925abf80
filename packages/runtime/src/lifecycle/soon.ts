/**
 * Runs `callback` when the code that runs now, and every promise that follows from it, is done, and before the event
 * loop goes on: where the work of one turn can be gathered without making anybody wait. Browsers have no such place;
 * there it is the next microtask.
 */
export const soon: (callback: () => void) => void =
  "process" in globalThis && typeof process.nextTick === "function"
    ? (callback) => process.nextTick(callback)
    : queueMicrotask;
