import { BaseError, type BaseErrorOptions, isBaseError } from "./base-error.ts";

/** Options of {@link UnexpectedError}. */
export interface UnexpectedErrorOptions extends BaseErrorOptions {
  readonly message?: string;
}

/** A bug or a failure that nobody declared. Its cause stays in this process: only id and message travel. */
export class UnexpectedError extends BaseError {
  readonly kind = "call";
  readonly type = "UnexpectedError";

  constructor(options: UnexpectedErrorOptions = {}) {
    super(options.message ?? "An unexpected error occurred", options);
  }

  /** Makes any thrown value an UnexpectedError. One that already is one comes back as it is. */
  static from(thrown: unknown): UnexpectedError {
    if (isUnexpectedError(thrown)) return thrown;
    if (thrown instanceof Error) return new UnexpectedError({ message: thrown.message, cause: thrown });
    return new UnexpectedError({
      message: `Something that is not an Error was thrown: ${describe(thrown)}`,
      cause: thrown,
    });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this === UnexpectedError) return isUnexpectedError(value);
    return Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

function isUnexpectedError(value: unknown): value is UnexpectedError {
  return isBaseError(value) && value.kind === "call" && value.type === "UnexpectedError";
}

/** A short text for a value of any kind. Total: a hostile `toString` cannot make it throw. */
function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 200));
  if (typeof value === "object" && value !== null) return "an object";
  return String(value);
}
