import type { Deadline } from "./deadline.ts";
import { systemTimers, type Timers } from "./timers.ts";

/** A signal that depends on others, and the function that ends this dependence. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Removes every listener and timer behind the signal. It then never aborts any more. Idempotent. */
  unlink(): void;
}

/**
 * A signal that aborts with the reason of the first of `signals` to abort. Unlike `AbortSignal.any` it can be let
 * go of: a long-lived signal does not collect a listener per call that was ever made with it.
 */
export function linkSignals(...signals: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const controller = new AbortController();
  const sources = signals.filter((signal) => signal !== undefined);
  const unlink = () => {
    for (const source of sources) source.removeEventListener("abort", onAbort);
  };
  const onAbort = (event: Event) => {
    unlink();
    controller.abort((event.target as AbortSignal).reason);
  };
  const aborted = sources.find((source) => source.aborted);
  if (aborted !== undefined) controller.abort(aborted.reason);
  else for (const source of sources) source.addEventListener("abort", onAbort, { once: true });
  return { signal: controller.signal, unlink };
}

export interface DeadlineSignalOptions {
  /** Aborts earlier, with this signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Makes the reason of the time-out. Default: a `TimeoutError` DOMException. */
  readonly reason?: () => unknown;
  readonly timers?: Timers;
}

/** A signal that aborts when `deadline` passes. Call `unlink` when the work is done: it clears the timer. */
export function deadlineSignal(deadline: Deadline, options: DeadlineSignalOptions = {}): LinkedSignal {
  const { signal: parent, reason = timedOut, timers = systemTimers } = options;
  const timeout = new AbortController();
  const linked = linkSignals(parent, timeout.signal);
  const remaining = deadline.remaining();
  if (remaining === Number.POSITIVE_INFINITY || linked.signal.aborted) return linked;
  if (remaining <= 0) {
    timeout.abort(reason());
    return linked;
  }
  const timer = timers.set(() => timeout.abort(reason()), remaining, { background: true });
  const clear = () => timer.clear();
  linked.signal.addEventListener("abort", clear, { once: true });
  return {
    signal: linked.signal,
    unlink() {
      clear();
      linked.signal.removeEventListener("abort", clear);
      linked.unlink();
    },
  };
}

function timedOut(): unknown {
  return new DOMException("the deadline has passed", "TimeoutError");
}

/**
 * An abort state that makes an `AbortController` only when somebody asks for `.signal`: most handlers never do, and
 * a controller costs more than the rest of a small call.
 */
export class LazySignal {
  #controller: AbortController | undefined;
  #aborted = false;
  #reason: unknown;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The first call wins; later ones have no effect. Without a reason the platform's `AbortError` is used. */
  abort(reason?: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason === undefined ? new DOMException("the work was aborted", "AbortError") : reason;
    this.#controller?.abort(this.#reason);
  }
}
