import { UnexpectedError } from "./unexpected-error.ts";

/** Registered, so that Results of two copies of this package know each other. */
const BRAND = Symbol.for("trellis.result");

/**
 * The outcome of something that can fail in expected ways: `Ok` with a value or `Err` with an error.
 * Narrow it by `isOk()` / `isErr()`, or leave by `take()`, `orThrow()`, `match()`, `unwrapOrElse()`.
 */
export type Result<T, E> = Ok<T, E> | Err<T, E>;

/** The methods of both arms. Identical signatures let TypeScript call them on the union. */
interface ResultMethods<T, E> {
  isOk(): this is Ok<T, E>;
  isErr(): this is Err<T, E>;
  /** Changes the value, leaves an error alone. What `change` throws is thrown. */
  map<U>(change: (value: T) => U): Result<U, E>;
  /** Changes the error, leaves a value alone. */
  mapErr<F>(change: (error: E) => F): Result<T, F>;
  /** Goes on with another step that can fail. */
  andThen<U, F>(next: (value: T) => Result<U, F>): Result<U, E | F>;
  /** Recovers from an error, perhaps by another error. */
  orElse<U, F>(recover: (error: E) => Result<U, F>): Result<T | U, F>;
  /** Leaves the Result by one of two ways. */
  match<A, B>(arms: { readonly ok: (value: T) => A; readonly err: (error: E) => B }): A | B;
  /** The value, or this very `Err`: `const x = r.take(); if (isErr(x)) return x;`. */
  take(): T | Err<never, E>;
  /** The value, or the error thrown. */
  orThrow(): T;
  /** The value, or what `otherwise` makes of the error. */
  unwrapOrElse<U>(otherwise: (error: E) => U): T | U;
}

/** The arm that holds a value. */
export class Ok<T, E = never> implements ResultMethods<T, E> {
  readonly ok = true;
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  isOk(): this is Ok<T, E> {
    return true;
  }

  isErr(): this is Err<T, E> {
    return false;
  }

  map<U>(change: (value: T) => U): Result<U, E> {
    return new Ok(change(this.value));
  }

  mapErr<F>(_change: (error: E) => F): Result<T, F> {
    return new Ok(this.value);
  }

  andThen<U, F>(next: (value: T) => Result<U, F>): Result<U, E | F> {
    return next(this.value);
  }

  orElse<U, F>(_recover: (error: E) => Result<U, F>): Result<T | U, F> {
    return new Ok(this.value);
  }

  match<A, B>(arms: { readonly ok: (value: T) => A; readonly err: (error: E) => B }): A | B {
    return arms.ok(this.value);
  }

  take(): T | Err<never, E> {
    return this.value;
  }

  orThrow(): T {
    return this.value;
  }

  unwrapOrElse<U>(_otherwise: (error: E) => U): T | U {
    return this.value;
  }
}

/** The arm that holds an error. */
export class Err<T, E> implements ResultMethods<T, E> {
  readonly ok = false;
  readonly error: E;

  constructor(error: E) {
    this.error = error;
  }

  isOk(): this is Ok<T, E> {
    return false;
  }

  isErr(): this is Err<T, E> {
    return true;
  }

  map<U>(_change: (value: T) => U): Result<U, E> {
    return new Err(this.error);
  }

  mapErr<F>(change: (error: E) => F): Result<T, F> {
    return new Err(change(this.error));
  }

  andThen<U, F>(_next: (value: T) => Result<U, F>): Result<U, E | F> {
    return new Err(this.error);
  }

  orElse<U, F>(recover: (error: E) => Result<U, F>): Result<T | U, F> {
    return recover(this.error);
  }

  match<A, B>(arms: { readonly ok: (value: T) => A; readonly err: (error: E) => B }): A | B {
    return arms.err(this.error);
  }

  take(): T | Err<never, E> {
    return new Err(this.error);
  }

  orThrow(): T {
    throw this.error instanceof Error ? this.error : UnexpectedError.from(this.error);
  }

  unwrapOrElse<U>(otherwise: (error: E) => U): T | U {
    return otherwise(this.error);
  }
}

Object.defineProperty(Ok.prototype, BRAND, { value: true });
Object.defineProperty(Err.prototype, BRAND, { value: true });

/** Makes an `Ok`; without an argument, one that holds `undefined`. */
export function ok(): Ok<void>;
export function ok<T>(value: T): Ok<T>;
export function ok<T>(value?: T): Ok<T | undefined> {
  return new Ok(value);
}

/** Makes an `Err`. */
export function err<E>(error: E): Err<never, E> {
  return new Err(error);
}

/** True for an `Ok` or `Err`, also one made by another copy of this package. */
export function isResult(value: unknown): value is Result<unknown, unknown> {
  return typeof value === "object" && value !== null && BRAND in value;
}

/** The `Ok` arms of a type; where they cannot be told (unknown), any `Ok`. */
type OkOf<X> = [Extract<X, Ok<unknown, unknown>>] extends [never] ? X & Ok<unknown, unknown> : Extract<X, Ok<unknown, unknown>>;
/** The `Err` arms of a type; where they cannot be told (unknown), any `Err`. */
type ErrOf<X> = [Extract<X, Err<unknown, unknown>>] extends [never] ? X & Err<unknown, unknown> : Extract<X, Err<unknown, unknown>>;

/** Narrows a Result, or anything else, to an `Ok`. */
export function isOk<X>(value: X): value is OkOf<X> {
  return isResult(value) && value.ok;
}

/** Narrows a Result, or what `take()` gave, to an `Err` that can be returned as it is. */
export function isErr<X>(value: X): value is ErrOf<X> {
  return isResult(value) && !value.ok;
}

type Values<R> = { -readonly [K in keyof R]: R[K] extends Result<infer T, unknown> ? T : never };
type Errors<R extends readonly unknown[]> = R[number] extends Result<unknown, infer E> ? E : never;

function all<const R extends readonly Result<unknown, unknown>[]>(results: R): Result<Values<R>, Errors<R>>;
function all(results: readonly Result<unknown, unknown>[]): Result<unknown, unknown> {
  const values: unknown[] = [];
  for (const result of results) {
    if (!result.ok) return new Err(result.error);
    values.push(result.value);
  }
  return new Ok(values);
}

function attempt<T>(work: () => T): Result<T, UnexpectedError>;
function attempt<T, E>(work: () => T, onThrow: (thrown: unknown) => E): Result<T, E>;
function attempt<T, E>(work: () => T, onThrow?: (thrown: unknown) => E): Result<T, E | UnexpectedError> {
  try {
    return new Ok(work());
  } catch (thrown) {
    return new Err(onThrow === undefined ? UnexpectedError.from(thrown) : onThrow(thrown));
  }
}

/** Ways to make a Result. */
export const Result = {
  ok,
  err,
  /** All values, or the first error in order. */
  all,
  /** Runs `work`; what it throws becomes an `Err` (an UnexpectedError, or what `onThrow` makes of it). */
  try: attempt,
} as const;
