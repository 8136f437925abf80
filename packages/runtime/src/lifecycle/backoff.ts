import { systemTimers, type Timers } from "./timers.ts";

export interface BackoffOptions {
  /** Delay before the second attempt, ms. */
  readonly initial: number;
  /** No delay is longer than this, ms. */
  readonly max: number;
  /** Growth per attempt. Default 2. */
  readonly factor?: number;
  /** Share of the delay that is random, 0 to 1. Default 0.5: a delay lies in its upper half. */
  readonly jitter?: number;
  /** Source of randomness in [0, 1). Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Delay in ms after failed attempt number `attempt` (from 1): exponential, bounded by `max`, jittered downwards so
 * that many clients that lost one server do not come back in step.
 */
export function backoffDelay(attempt: number, options: BackoffOptions): number {
  const { initial, max, factor = 2, jitter = 0.5, random = Math.random } = options;
  const grown = initial * factor ** Math.max(0, attempt - 1);
  const bounded = Math.min(max, Number.isFinite(grown) ? grown : max);
  return bounded * (1 - jitter * random());
}

export interface SleepOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timers?: Timers;
  /** Does not keep the process alive. Default false. */
  readonly background?: boolean;
}

/** Waits `ms`; rejects with the signal's reason as soon as it aborts, leaving neither timer nor listener. */
export function sleep(ms: number, options: SleepOptions = {}): Promise<void> {
  const { signal, timers = systemTimers, background = false } = options;
  if (signal === undefined) {
    return new Promise((resolve) => {
      timers.set(resolve, ms, { background });
    });
  }
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      timer.clear();
      reject(signal.reason);
    };
    const timer = timers.set(
      () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      },
      ms,
      { background },
    );
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
