import { Deadline } from "./deadline.ts";
import { systemTimers, type Timers } from "./timers.ts";

/** Ends one thing. It may use up to what is left of `deadline`, the budget of the whole shutdown. */
export type Closer = (deadline: Deadline) => void | PromiseLike<void>;

/** One step of a shutdown that went wrong. `abandoned`: it had not ended when the time was up. */
export interface CloseFailure {
  readonly name: string;
  readonly error: unknown;
  readonly abandoned: boolean;
}

/** Thrown by `Scope.add` when the scope was closed in the meantime; what was added has been closed already. */
export class ScopeClosedError extends Error {
  override readonly name = "ScopeClosedError";
  constructor(scope: string, added: string) {
    super(`${scope} was closed before "${added}" was ready`);
  }
}

export interface ScopeOptions {
  /** For messages. Default "scope". */
  readonly name?: string;
  readonly timers?: Timers;
}

/**
 * The order of a shutdown, as data: whatever opens something adds how to close it.
 *
 * Invariants:
 * 1. Closers run one after the other, last in first out, each exactly once, also when an earlier one failed.
 * 2. `close` never rejects and is shared by all its callers.
 * 3. Nothing leaks when `close` overtakes a start: what is added after it is closed at once, and `add` throws, so
 *    that the start ends.
 * 4. With a deadline, `close` ends by then: a closer that is late is reported and left, the others still run.
 */
export class Scope implements AsyncDisposable {
  readonly #name: string;
  readonly #timers: Timers;
  readonly #entries: { name: string; closer: Closer }[] = [];
  readonly #failures: CloseFailure[] = [];
  #deadline: Deadline | undefined;
  #closing: Promise<readonly CloseFailure[]> | undefined;

  constructor(options: ScopeOptions = {}) {
    this.#name = options.name ?? "scope";
    this.#timers = options.timers ?? systemTimers;
  }

  /** True once `close` was called. */
  get closed(): boolean {
    return this.#closing !== undefined;
  }

  /** Registers a closer. The returned function takes it out again, for things that ended before the scope. */
  add(name: string, closer: Closer): () => void {
    const entry = { name, closer };
    if (this.#closing !== undefined) {
      this.#closing = this.#closing.then(() => this.#run(entry)).then(() => this.#failures);
      throw new ScopeClosedError(this.#name, name);
    }
    this.#entries.push(entry);
    return () => {
      const index = this.#entries.lastIndexOf(entry);
      if (index >= 0) this.#entries.splice(index, 1);
    };
  }

  /** Throws when the scope was closed: for a start that has several steps. */
  throwIfClosed(step: string): void {
    if (this.closed) throw new ScopeClosedError(this.#name, step);
  }

  /** Runs all closers, and gives what went wrong. The first caller's deadline counts; without one it waits. */
  close(deadline?: Deadline): Promise<readonly CloseFailure[]> {
    if (this.#closing === undefined) {
      this.#deadline = deadline;
      // Started in a microtask: a closer that calls close() itself must find the promise in place.
      this.#closing = Promise.resolve().then(() => this.#runAll());
    }
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures = await this.close();
    if (failures.length === 0) return;
    const names = failures.map((failure) => failure.name).join(", ");
    throw new AggregateError(
      failures.map((failure) => failure.error),
      `${this.#name}: closing failed: ${names}`,
    );
  }

  async #runAll(): Promise<readonly CloseFailure[]> {
    for (let entry = this.#entries.pop(); entry !== undefined; entry = this.#entries.pop()) {
      await this.#run(entry);
    }
    return this.#failures;
  }

  async #run(entry: { name: string; closer: Closer }): Promise<void> {
    const deadline = this.#deadline ?? Deadline.never();
    try {
      const closing = entry.closer(deadline);
      if (!isPromiseLike(closing)) return;
      if (await this.#inTime(closing, deadline)) return;
      const error = new Error(`closing "${entry.name}" took too long and was abandoned`);
      this.#failures.push({ name: entry.name, error, abandoned: true });
    } catch (error) {
      this.#failures.push({ name: entry.name, error, abandoned: false });
    }
  }

  /** False when the deadline passed first; the closer's own end is then of no interest, a rejection included. */
  #inTime(closing: PromiseLike<void>, deadline: Deadline): Promise<boolean> {
    const done = Promise.resolve(closing).then(() => true);
    const remaining = deadline.remaining();
    if (remaining === Number.POSITIVE_INFINITY) return done;
    return new Promise((resolve, reject) => {
      const timer = this.#timers.set(() => resolve(false), remaining);
      done.then(resolve, reject).finally(() => timer.clear());
    });
  }
}

function isPromiseLike(value: void | PromiseLike<void>): value is PromiseLike<void> {
  return typeof value === "object" && value !== null && "then" in value;
}
