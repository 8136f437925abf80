import { UnexpectedError } from "./unexpected-error.ts";

/** Registered, so that Results of two copies of this package know each other. */
const BRAND = Symbol.for("trellis.result");

/**
 * The outcome of something that can fail in expected ways: `Ok` with a value or `Err` with an error.
 * Narrow it by `isOk()` / `isErr()`, or leave by `take()`, `orThrow()`, `match()`, `unwrapOrElse()`.
 */
export type Result<T, E> = Ok<T> | Err<E>;

/** Any Result, for type parameters. */
export type AnyResult = Ok<unknown> | Err<unknown>;

/** The value type of a Result. */
export type ValueOf<R> = R extends Ok<infer T> ? T : never;

/** The error type of a Result. */
export type ErrorOf<R> = R extends Err<infer E> ? E : never;

/** The two ways out of a Result. */
export interface Arms<T, E, A, B> {
  readonly ok: (value: T) => A;
  readonly err: (error: E) => B;
}

/**
 * The methods of both arms. Each reads its types off `this`: an `Ok` needs no error type and an `Err` no value type,
 * so that an `Err` found in one Result can be returned as any other Result with that error, and a union of several
 * errors (what a function without an annotation returns) has the same methods as a Result.
 *
 * Each has one public signature and a body that sees `unknown`: what a callback is given is of the type that it
 * expects because both come from the same `this`; the casts to `never` say so.
 */
abstract class Outcome {
  isOk(): this is Extract<this, { readonly ok: true }> {
    return isOk(this);
  }

  isErr(): this is Extract<this, { readonly ok: false }> {
    return isErr(this);
  }

  /** Changes the value, leaves an error alone. What `change` throws is thrown. */
  map<R extends AnyResult, U>(this: R, change: (value: ValueOf<R>) => U): Result<U, ErrorOf<R>>;
  map(this: AnyResult, change: (value: never) => unknown): AnyResult {
    return this.ok ? new Ok(change(this.value as never)) : this;
  }

  /** Changes the error, leaves a value alone. */
  mapErr<R extends AnyResult, F>(this: R, change: (error: ErrorOf<R>) => F): Result<ValueOf<R>, F>;
  mapErr(this: AnyResult, change: (error: never) => unknown): AnyResult {
    return this.ok ? this : new Err(change(this.error as never));
  }

  /** Goes on with another step that can fail. */
  andThen<R extends AnyResult, N extends AnyResult>(
    this: R,
    next: (value: ValueOf<R>) => N,
  ): Result<ValueOf<N>, ErrorOf<R> | ErrorOf<N>>;
  andThen(this: AnyResult, next: (value: never) => AnyResult): AnyResult {
    return this.ok ? next(this.value as never) : this;
  }

  /** Recovers from an error, perhaps by another error. */
  orElse<R extends AnyResult, N extends AnyResult>(
    this: R,
    recover: (error: ErrorOf<R>) => N,
  ): Result<ValueOf<R> | ValueOf<N>, ErrorOf<N>>;
  orElse(this: AnyResult, recover: (error: never) => AnyResult): AnyResult {
    return this.ok ? this : recover(this.error as never);
  }

  /** Leaves the Result by one of two ways. */
  match<R extends AnyResult, A, B>(this: R, arms: Arms<ValueOf<R>, ErrorOf<R>, A, B>): A | B;
  match(this: AnyResult, arms: Arms<never, never, unknown, unknown>): unknown {
    return this.ok ? arms.ok(this.value as never) : arms.err(this.error as never);
  }

  /** The value, or this very `Err`: `const x = r.take(); if (isErr(x)) return x;`. */
  take<R extends AnyResult>(this: R): ValueOf<R> | Extract<R, { readonly ok: false }>;
  take(this: AnyResult): unknown {
    return this.ok ? this.value : this;
  }

  /** The value, or the error thrown. */
  orThrow<R extends AnyResult>(this: R): ValueOf<R>;
  orThrow(this: AnyResult): unknown {
    if (this.ok) return this.value;
    throw this.error instanceof Error ? this.error : UnexpectedError.from(this.error);
  }

  /** The value, or what `otherwise` makes of the error. */
  unwrapOrElse<R extends AnyResult, U>(this: R, otherwise: (error: ErrorOf<R>) => U): ValueOf<R> | U;
  unwrapOrElse(this: AnyResult, otherwise: (error: never) => unknown): unknown {
    return this.ok ? this.value : otherwise(this.error as never);
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
