import { BaseError, type BaseErrorOptions, isBaseError, type JsonObject } from "@trellis/result";

/** What every call error can be given beside its own fields. */
export interface CallErrorOptions extends Omit<BaseErrorOptions, "details"> {
  /** Text for people; each error has a good one of its own. It may travel: no subjects, no secrets. */
  readonly message?: string;
}

/** An open list of literals: the known ones complete in an editor, newer ones from the wire still fit. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

/** An error of ours, of any call: not one that an API declares. */
export abstract class CallError extends BaseError {
  readonly kind = "call";

  /**
   * `instanceof` goes by brand and type name, so that two copies of this package in one process know each other's
   * errors. Classes derived from ours go by prototype, as always.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this === CallError) return isBaseError(value) && value.kind === "call";
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    const known: unknown = Object.getOwnPropertyDescriptor(this, "errorType")?.value;
    return known !== undefined && isBaseError(value) && value.kind === "call" && value.type === known;
  }
}

/** The options for `BaseError`, with the error's own fields as `details`: that is how they travel. */
export function withDetails(options: CallErrorOptions, details: JsonObject): BaseErrorOptions {
  return { ...options, details };
}
