type AbortCallback = (reason: unknown) => void;

/** What waits for one signal. Signals that nobody waits for are not held. */
const waiting = new WeakMap<AbortSignal, Set<AbortCallback>>();

/**
 * Calls `callback` when `signal` aborts, until the returned function is called. However many wait for a signal, it
 * has one listener: platforms take many on one signal for a leak, and say so.
 */
export function onAbort(signal: AbortSignal, callback: AbortCallback): () => void {
  const callbacks = waiting.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || waiting.get(signal) !== callbacks) return;
    waiting.delete(signal);
    signal.removeEventListener("abort", onSignal);
  };
}

function listen(signal: AbortSignal): Set<AbortCallback> {
  const callbacks = new Set<AbortCallback>();
  waiting.set(signal, callbacks);
  signal.addEventListener("abort", onSignal, { once: true });
  return callbacks;
}

function onSignal(event: Event): void {
  const signal = event.target as AbortSignal;
  const callbacks = waiting.get(signal) ?? [];
  waiting.delete(signal);
  for (const callback of callbacks) callback(signal.reason);
}
