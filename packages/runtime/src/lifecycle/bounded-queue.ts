/**
 * What `push` does when the queue is full: `reject` refuses the new item, `drop-oldest` makes room (and counts),
 * `fail` ends the queue with a `QueueOverflowError` after what it holds.
 */
export type OverflowPolicy = "reject" | "drop-oldest" | "fail";

export class QueueOverflowError extends Error {
  override readonly name = "QueueOverflowError";
  constructor(capacity: number) {
    super(`the reader is too slow: more than ${capacity} items were waiting`);
  }
}

export interface BoundedQueueOptions<T> {
  /** Most items that wait for the reader. A whole number, at least 1. */
  readonly capacity: number;
  readonly overflow: OverflowPolicy;
  /** Ends the queue at once with the signal's reason; what waits is dropped. */
  readonly signal?: AbortSignal | undefined;
  /** Called exactly once, when nothing more will be taken in: the place to unsubscribe the source. */
  readonly onClose?: (() => void) | undefined;
  /** Called for an item that `drop-oldest` threw away. */
  readonly onDrop?: ((item: T) => void) | undefined;
  /** Called whenever the reader was given an item: the place to give credit. */
  readonly onTake?: (() => void) | undefined;
}

interface Waiter<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

type State = { kind: "open" } | { kind: "ended" } | { kind: "failed"; error: unknown };

/**
 * The one queue behind every stream that a user iterates. A source pushes, one reader iterates.
 *
 * Invariants:
 * 1. Never more than `capacity` items wait; items that wait and readers that wait never exist together.
 * 2. `end` and `fail` let the reader have what waits first; `return` and the signal free it at once.
 * 3. The error is given to one `next`; after it the iteration is done.
 * 4. Once closed, no listener, item or waiter is held.
 */
export class BoundedQueue<T> implements AsyncIterableIterator<T, undefined, undefined> {
  readonly #options: BoundedQueueOptions<T>;
  readonly #items: (T | undefined)[] = [];
  #head = 0;
  #waiters: Waiter<T>[] = [];
  #state: State = { kind: "open" };
  #dropped = 0;
  readonly #onAbort = () => this.abort(this.#options.signal?.reason);

  constructor(options: BoundedQueueOptions<T>) {
    if (!Number.isInteger(options.capacity) || options.capacity < 1) {
      throw new RangeError("the capacity of a queue must be a whole number of at least 1");
    }
    this.#options = options;
    const { signal } = options;
    if (signal === undefined) return;
    if (signal.aborted) this.abort(signal.reason);
    else signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Number of items that wait. */
  get size(): number {
    return this.#items.length - this.#head;
  }

  /** Number of items that `drop-oldest` has thrown away. */
  get dropped(): number {
    return this.#dropped;
  }

  /** True while `push` takes items. */
  get open(): boolean {
    return this.#state.kind === "open";
  }

  /** Hands `item` to the reader or lets it wait; false when it was not taken (full, or closed). */
  push(item: T): boolean {
    if (this.#state.kind !== "open") return false;
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) {
      waiter.resolve({ done: false, value: item });
      this.#options.onTake?.();
      return true;
    }
    if (this.size < this.#options.capacity) {
      this.#items.push(item);
      return true;
    }
    return this.#overflow(item);
  }

  /** No more items will come; the reader gets what waits, then the end. Idempotent. */
  end(): void {
    this.#close({ kind: "ended" });
  }

  /** Like `end`, but the reader gets `error` after what waits. The first of `end` and `fail` counts. */
  fail(error: unknown): void {
    this.#close({ kind: "failed", error });
  }

  /** Ends at once: what waits is dropped, and the reader gets `error`. */
  abort(error: unknown): void {
    this.#clear();
    if (this.#state.kind === "open") this.#close({ kind: "failed", error });
    else this.#state = { kind: "failed", error };
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.size > 0) {
      const value = this.#take();
      this.#unlistenWhenDrained();
      this.#options.onTake?.();
      return Promise.resolve({ done: false, value });
    }
    const state = this.#state;
    if (state.kind === "open") {
      return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
    }
    if (state.kind === "ended") return Promise.resolve(DONE);
    this.#state = { kind: "ended" };
    return Promise.reject(state.error);
  }

  /** The reader is done: frees what waits, ends a parked `next`, closes the source. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.#clear();
    if (this.#state.kind === "failed") this.#state = { kind: "ended" };
    this.end();
    this.#unlistenWhenDrained();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #overflow(item: T): boolean {
    const { overflow, capacity, onDrop } = this.#options;
    if (overflow === "reject") return false;
    if (overflow === "fail") {
      this.fail(new QueueOverflowError(capacity));
      return false;
    }
    const oldest = this.#take();
    this.#items.push(item);
    this.#dropped += 1;
    onDrop?.(oldest);
    return true;
  }

  #take(): T {
    const item = this.#items[this.#head] as T;
    this.#items[this.#head] = undefined;
    this.#head += 1;
    // Compacted when half of it is empty: each item is moved at most once on average.
    if (this.#head === this.#items.length || (this.#head >= 32 && this.#head * 2 >= this.#items.length)) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  #clear(): void {
    this.#items.length = 0;
    this.#head = 0;
  }

  #close(state: State): void {
    if (this.#state.kind !== "open") return;
    const waiters = this.#waiters;
    this.#waiters = [];
    this.#state = state;
    this.#unlistenWhenDrained();
    for (const waiter of waiters) this.next().then(waiter.resolve, waiter.reject);
    this.#options.onClose?.();
  }

  /** The signal still matters while a closed queue holds items: it frees them. */
  #unlistenWhenDrained(): void {
    if (this.#state.kind !== "open" && this.size === 0) {
      this.#options.signal?.removeEventListener("abort", this.#onAbort);
    }
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
