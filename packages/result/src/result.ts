import { UnexpectedError } from "./unexpected-error.ts";

/** Registered, so that Results of two copies of this package know each other. */
const BRAND = Symbol.for("trellis.result");

/**
 * The outcome of something that can fail in expected ways: `Ok` with a value or `Err` with an error.
 * Narrow it by `isOk()` / `isErr()`, or leave by `take()`, `orThrow()`, `match()`, `unwrapOrElse()`.
 */
export type Result<T, E> = Ok<T> | Err<E>;

/** The two ways out of a Result. */
export interface Arms<T, E, A, B> {
  readonly ok: (value: T) => A;
  readonly err: (error: E) => B;
}

/**
 * The methods of both arms. Each takes its types from `this`, so that an `Ok` needs no error type and an `Err` no
 * value type: an `Err` found in one Result can be returned as any other Result with that error.
 */
abstract class Outcome {
  isOk<T, E = never>(this: Result<T, E>): this is Ok<T> {
    return this.ok;
  }

  isErr<E, T = never>(this: Result<T, E>): this is Err<E> {
    return !this.ok;
  }

  /** Changes the value, leaves an error alone. What `change` throws is thrown. */
  map<T, U, E = never>(this: Result<T, E>, change: (value: T) => U): Result<U, E> {
    return this.ok ? new Ok(change(this.value)) : this;
  }

  /** Changes the error, leaves a value alone. */
  mapErr<E, F, T = never>(this: Result<T, E>, change: (error: E) => F): Result<T, F> {
    return this.ok ? this : new Err(change(this.error));
  }

  /** Goes on with another step that can fail. */
  andThen<T, U = never, F = never, E = never>(
    this: Result<T, E>,
    next: (value: T) => Result<U, F>,
  ): Result<U, E | F> {
    return this.ok ? next(this.value) : this;
  }

  /** Recovers from an error, perhaps by another error. */
  orElse<E, U = never, F = never, T = never>(
    this: Result<T, E>,
    recover: (error: E) => Result<U, F>,
  ): Result<T | U, F> {
    return this.ok ? this : recover(this.error);
  }

  /** Leaves the Result by one of two ways. */
  match<A, B, T = never, E = never>(this: Result<T, E>, arms: Arms<T, E, A, B>): A | B {
    return this.ok ? arms.ok(this.value) : arms.err(this.error);
  }

  /** The value, or this very `Err`: `const x = r.take(); if (isErr(x)) return x;`. */
  take<T = never, E = never>(this: Result<T, E>): T | Err<E> {
    return this.ok ? this.value : this;
  }

  /** The value, or the error thrown. */
  orThrow<T = never, E = never>(this: Result<T, E>): T {
    if (this.ok) return this.value;
    throw this.error instanceof Error ? this.error : UnexpectedError.from(this.error);
  }

  /** The value, or what `otherwise` makes of the error. */
  unwrapOrElse<E, U, T = never>(this: Result<T, E>, otherwise: (error: E) => U): T | U {
    return this.ok ? this.value : otherwise(this.error);
  }
}

/** The arm that holds a value. */
export class Ok<T> extends Outcome {
  readonly ok = true;
  readonly value: T;

  constructor(value: T) {
    super();
    this.value = value;
  }
}

/** The arm that holds an error. */
export class Err<E> extends Outcome {
  readonly ok = false;
  readonly error: E;

  constructor(error: E) {
    super();
    this.error = error;
  }
}

Object.defineProperty(Outcome.prototype, BRAND, { value: true });

/** Makes an `Ok`; without an argument, one that holds `undefined`. */
export function ok(): Ok<void>;
export function ok<T>(value: T): Ok<T>;
export function ok<T>(value?: T): Ok<T | undefined> {
  return new Ok(value);
}

/** Makes an `Err`. */
export function err<E>(error: E): Err<E> {
  return new Err(error);
}

/** True for an `Ok` or `Err`, also one made by another copy of this package. */
export function isResult(value: unknown): value is Result<unknown, unknown> {
  return typeof value === "object" && value !== null && BRAND in value;
}

/** The `Ok` arms of a type; where they cannot be told (unknown), any `Ok`. */
type OkOf<X> = [Extract<X, Ok<unknown>>] extends [never] ? X & Ok<unknown> : Extract<X, Ok<unknown>>;
/** The `Err` arms of a type; where they cannot be told (unknown), any `Err`. */
type ErrOf<X> = [Extract<X, Err<unknown>>] extends [never] ? X & Err<unknown> : Extract<X, Err<unknown>>;

/** Narrows a Result, or anything else, to an `Ok`. */
export function isOk<X>(value: X): value is OkOf<X> {
  return isResult(value) && value.ok;
}

/** Narrows a Result, or what `take()` gave, to an `Err` that can be returned as it is. */
export function isErr<X>(value: X): value is ErrOf<X> {
  return isResult(value) && !value.ok;
}

/** The value type of a Result. */
export type ValueOf<R> = R extends Ok<infer T> ? T : never;
/** The error type of a Result. */
export type ErrorOf<R> = R extends Err<infer E> ? E : never;

type Values<R> = { -readonly [K in keyof R]: ValueOf<R[K]> };
type Errors<R extends readonly unknown[]> = ErrorOf<R[number]>;

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
