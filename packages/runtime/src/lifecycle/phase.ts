export type PhaseListener<TState> = (state: TState) => void | PromiseLike<void>;

/** What the owner of a `Phase` hands out: reading and watching, no setting. */
export interface ReadonlyPhase<TState> {
  readonly current: TState;
  subscribe(listener: PhaseListener<TState>): () => void;
  until(wanted: (state: TState) => boolean, options?: { signal?: AbortSignal | undefined }): Promise<TState>;
}

export interface PhaseOptions {
  /** Hears what a listener threw or rejected with. Default: nothing, the exception is dropped. */
  readonly onListenerError?: (error: unknown) => void;
}

interface Notification<TState> {
  readonly state: TState;
  readonly to: readonly Subscription<TState>[];
}

interface Subscription<TState> {
  readonly listener: PhaseListener<TState>;
  active: boolean;
}

/**
 * A state (a discriminated union) that can be watched.
 *
 * Invariants:
 * 1. A listener gets the state that is current when it subscribes, before `subscribe` returns, then each later one
 *    exactly once and in order, also when a listener itself sets a new state.
 * 2. After unsubscribing it is not called any more, not even for a change that is being told.
 * 3. One listener's exception or rejection reaches neither the setter nor another listener.
 */
export class Phase<TState> implements ReadonlyPhase<TState> {
  #current: TState;
  readonly #subscriptions = new Set<Subscription<TState>>();
  readonly #pending: Notification<TState>[] = [];
  readonly #onListenerError: (error: unknown) => void;
  #notifying = false;

  constructor(initial: TState, options: PhaseOptions = {}) {
    this.#current = initial;
    this.#onListenerError = options.onListenerError ?? (() => undefined);
  }

  get current(): TState {
    return this.#current;
  }

  set(state: TState): void {
    this.#current = state;
    this.#pending.push({ state, to: [...this.#subscriptions] });
    if (this.#notifying) return;
    this.#notifying = true;
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      for (const subscription of next.to) {
        if (subscription.active) this.#tell(subscription.listener, next.state);
      }
    }
    this.#notifying = false;
  }

  subscribe(listener: PhaseListener<TState>): () => void {
    const subscription: Subscription<TState> = { listener, active: true };
    const state = this.#current;
    this.#subscriptions.add(subscription);
    this.#tell(listener, state);
    return () => {
      subscription.active = false;
      this.#subscriptions.delete(subscription);
    };
  }

  /** Resolves with the first state (the current one included) that is wanted; rejects when the signal aborts. */
  until(
    wanted: (state: TState) => boolean,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<TState> {
    const { signal } = options;
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    if (wanted(this.#current)) return Promise.resolve(this.#current);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        unsubscribe();
        reject(signal?.reason);
      };
      // The current state is told first, and is known not to be wanted: `unsubscribe` exists when it is needed.
      const unsubscribe = this.subscribe((state) => {
        if (!wanted(state)) return;
        unsubscribe();
        signal?.removeEventListener("abort", onAbort);
        resolve(state);
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #tell(listener: PhaseListener<TState>, state: TState): void {
    try {
      const outcome = listener(state);
      if (typeof outcome === "object" && outcome !== null && "then" in outcome) {
        outcome.then(undefined, this.#onListenerError);
      }
    } catch (error) {
      this.#onListenerError(error);
    }
  }
}
