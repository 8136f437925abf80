import { type AnyResult, Err, type ErrorOf, err, Ok, Result, type ValueOf } from "./result.ts";
import { UnexpectedError } from "./unexpected-error.ts";

type Eventual<T> = T | PromiseLike<T>;

/** An AsyncResult together with the function that settles it, once. */
export interface Deferred<T, E> {
  readonly result: AsyncResult<T, E>;
  /** Settles it. The first call wins; later ones do nothing. */
  readonly resolve: (result: Result<T, E>) => void;
}

/**
 * A Result that is on its way: `await` gives the Result, the methods go on without awaiting.
 *
 * Its work has already begun when it exists, and it never rejects: what a callback or an underlying promise throws
 * becomes an `Err` with an {@link UnexpectedError}. An AsyncResult that nobody looks at costs no promise.
 */
export class AsyncResult<T, E> implements PromiseLike<Result<T, E>> {
  #settled: Result<T, E> | undefined;
  #promise: Promise<Result<T, E>> | undefined;
  #wake: (() => void) | undefined;

  private constructor(promise?: Promise<Result<T, E>>) {
    this.#promise = promise;
  }

  /** One that is settled later by whoever holds `resolve`. The cheapest way to bridge from callbacks. */
  static deferred<T, E>(): Deferred<T, E> {
    const result = new AsyncResult<T, E>();
    return { result, resolve: (settled) => result.#settle(settled) };
  }

  /** One that follows a Result or a promise of one. A rejection becomes an UnexpectedError. */
  static from<R extends AnyResult>(
    source: Eventual<R>,
  ): AsyncResult<ValueOf<R>, ErrorOf<R> | UnexpectedError>;
  static from(source: Eventual<AnyResult>): AsyncResult<unknown, unknown> {
    if (isThenable(source)) return new AsyncResult(Promise.resolve(source).then((r) => r, toUnexpected));
    return AsyncResult.#of(source);
  }

  /** Starts `work` now; what it throws or rejects with becomes an `Err`. */
  static try<T>(work: () => Eventual<T>): AsyncResult<T, UnexpectedError>;
  static try<T, E>(work: () => Eventual<T>, onThrow: (thrown: unknown) => E): AsyncResult<T, E>;
  static try<T, E>(
    work: () => Eventual<T>,
    onThrow?: (thrown: unknown) => E,
  ): AsyncResult<T, E | UnexpectedError> {
    const run = async (): Promise<Result<T, E | UnexpectedError>> => {
      try {
        return new Ok(await work());
      } catch (thrown) {
        return new Err(onThrow === undefined ? UnexpectedError.from(thrown) : onThrow(thrown));
      }
    };
    return new AsyncResult(run().catch(toUnexpected));
  }

  /** One that is already an `Ok`. */
  static ok(): AsyncResult<void, never>;
  static ok<T>(value: T): AsyncResult<T, never>;
  static ok<T>(value?: T): AsyncResult<T | undefined, never> {
    return AsyncResult.#of<T | undefined, never>(new Ok(value));
  }

  /** One that is already an `Err`. */
  static err<E>(error: E): AsyncResult<never, E> {
    return AsyncResult.#of<never, E>(err(error));
  }

  /** All values, or the first error in order. Waits for all of them. */
  static all<const R extends readonly PromiseLike<Result<unknown, unknown>>[]>(
    results: R,
  ): AsyncResult<AwaitedValues<R>, AwaitedErrors<R>> {
    const gathered = Promise.all(results).then(
      (settled) => Result.all(settled) as Result<AwaitedValues<R>, AwaitedErrors<R>>,
    );
    return new AsyncResult(gathered.catch(toUnexpected));
  }

  static #of<T, E>(settled: Result<T, E>): AsyncResult<T, E> {
    const result = new AsyncResult<T, E>();
    result.#settled = settled;
    return result;
  }

  // biome-ignore lint/suspicious/noThenProperty: being awaitable is the purpose of this class
  then<A = Result<T, E>, B = never>(
    onFulfilled?: ((result: Result<T, E>) => Eventual<A>) | null,
    onRejected?: ((reason: unknown) => Eventual<B>) | null,
  ): Promise<A | B> {
    return this.toPromise().then(onFulfilled, onRejected);
  }

  /** The promise behind it, which never rejects. */
  toPromise(): Promise<Result<T, E>> {
    if (this.#promise === undefined) {
      const settled = this.#settled;
      this.#promise =
        settled === undefined
          ? new Promise<Result<T, E>>((resolve) => {
              this.#wake = () => {
                if (this.#settled !== undefined) resolve(this.#settled);
              };
            })
          : Promise.resolve(settled);
    }
    return this.#promise;
  }

  /** Changes the value, leaves an error alone. */
  map<U>(change: (value: T) => Eventual<U>): AsyncResult<U, E> {
    return this.#chain<U, E>(async (r) => (r.ok ? new Ok(await change(r.value)) : r));
  }

  /** Changes the error, leaves a value alone. */
  mapErr<F>(change: (error: E) => Eventual<F>): AsyncResult<T, F> {
    return this.#chain<T, F>(async (r) => (r.ok ? r : new Err(await change(r.error))));
  }

  /** Goes on with another step that can fail. */
  andThen<N extends AnyResult>(next: (value: T) => Eventual<N>): AsyncResult<ValueOf<N>, E | ErrorOf<N>>;
  andThen(next: (value: T) => Eventual<AnyResult>): AsyncResult<unknown, unknown> {
    return this.#chain<unknown, unknown>(async (r) => (r.ok ? next(r.value) : r));
  }

  /** Recovers from an error, perhaps by another error. */
  orElse<N extends AnyResult>(recover: (error: E) => Eventual<N>): AsyncResult<T | ValueOf<N>, ErrorOf<N>>;
  orElse(recover: (error: E) => Eventual<AnyResult>): AsyncResult<unknown, unknown> {
    return this.#chain<unknown, unknown>(async (r) => (r.ok ? r : recover(r.error)));
  }

  /** Leaves it by one of two ways. Rejects if the chosen arm throws. */
  match<A, B>(arms: {
    readonly ok: (value: T) => Eventual<A>;
    readonly err: (error: E) => Eventual<B>;
  }): Promise<A | B> {
    return this.toPromise().then((r): Eventual<A | B> => (r.ok ? arms.ok(r.value) : arms.err(r.error)));
  }

  /** The value, or an `Err`: `const x = await call.take(); if (isErr(x)) return x;`. */
  take(): Promise<T | Err<E>> {
    return this.toPromise().then((r) => r.take());
  }

  /** The value, or the error thrown (the returned promise rejects with it). */
  orThrow(): Promise<T> {
    return this.toPromise().then((r) => r.orThrow());
  }

  /** The value, or what `otherwise` makes of the error. */
  unwrapOrElse<U>(otherwise: (error: E) => Eventual<U>): Promise<T | U> {
    return this.toPromise().then((r): Eventual<T | U> => (r.ok ? r.value : otherwise(r.error)));
  }

  #settle(settled: Result<T, E>): void {
    if (this.#settled !== undefined) return;
    this.#settled = settled;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** The one place where a throwing callback is turned into an `Err`. */
  #chain<U, F>(step: (result: Result<T, E>) => Promise<Result<U, F>>): AsyncResult<U, F> {
    return new AsyncResult<U, F>(this.toPromise().then(step).catch(toUnexpected));
  }
}

type AwaitedValues<R> = { -readonly [K in keyof R]: ValueOf<Awaited<R[K]>> };
type AwaitedErrors<R extends readonly unknown[]> = ErrorOf<Awaited<R[number]>>;

function isThenable<T>(value: Eventual<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/**
 * The `never` is a promise about types, not about values: a callback that throws is a bug, and bugs are
 * UnexpectedErrors whether or not the error type of the chain has room for them.
 */
function toUnexpected(thrown: unknown): Err<never> {
  return new Err<unknown>(UnexpectedError.from(thrown)) as Err<never>;
}
