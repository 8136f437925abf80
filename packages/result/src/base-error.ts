import type { JsonObject } from "./json.ts";

/**
 * Identity of our errors. A registered symbol, not a class reference, so that two copies of this package in one
 * process (a bundled one and an installed one, say) still know each other's errors.
 */
const BRAND = Symbol.for("trellis.error");

/** What every Trellis error can be given beside its message. */
export interface BaseErrorOptions {
  /** Identity of this occurrence. A fresh random one when omitted; given when an error is rebuilt from the wire. */
  readonly id?: string;
  /** The error behind this one. Never serialised: it may hold secrets. */
  readonly cause?: unknown;
  /** Machine-readable facts for the receiver. */
  readonly details?: JsonObject;
  /** Trace in which the error happened (32 hex characters). */
  readonly traceId?: string;
  /** What a person can do about it. */
  readonly hint?: string;
  /** Where it happened: queue, action, participant, and so on. */
  readonly context?: JsonObject;
}

/** The serialised form of an error: safe to log, to store and to send. */
export interface SerializedError {
  readonly id: string;
  readonly kind: string;
  readonly type: string;
  readonly message: string;
  readonly details?: JsonObject;
  readonly traceId?: string;
  readonly hint?: string;
  readonly context?: JsonObject;
}

/**
 * Root of every Trellis error. Errors are data: a literal `kind` and `type` to switch on, and an `id` that joins
 * what a caller sees with what the provider logged.
 */
export abstract class BaseError extends Error {
  /** Family: `"declared"` for errors of an API, `"call"` for those of Trellis. */
  abstract readonly kind: string;
  /** The one word to switch on, unique within a kind. */
  abstract readonly type: string;

  readonly id: string;
  readonly details?: JsonObject;
  readonly traceId?: string;
  readonly hint?: string;
  readonly context?: JsonObject;

  constructor(message: string, options: BaseErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.id = options.id ?? randomId();
    if (options.details !== undefined) this.details = options.details;
    if (options.traceId !== undefined) this.traceId = options.traceId;
    if (options.hint !== undefined) this.hint = options.hint;
    if (options.context !== undefined) this.context = options.context;
  }

  /** The form to log, store and send. Holds neither the stack nor the cause. */
  toSerializable(): SerializedError {
    return {
      id: this.id,
      kind: this.kind,
      type: this.type,
      message: this.message,
      ...(this.details !== undefined && { details: this.details }),
      ...(this.traceId !== undefined && { traceId: this.traceId }),
      ...(this.hint !== undefined && { hint: this.hint }),
      ...(this.context !== undefined && { context: this.context }),
    };
  }

  /** `JSON.stringify(error)` gives the serialisable form, so that a logger never walks into a cause. */
  toJSON(): SerializedError {
    return this.toSerializable();
  }

  /** `instanceof BaseError` goes by brand; `instanceof` a subclass goes by prototype, as always. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this === BaseError) return isBaseError(value);
    return Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

Object.defineProperty(BaseError.prototype, BRAND, { value: true });
// `name` follows `type`, so that stacks and loggers print `OutOfStock: ...` and not `Error: ...`.
Object.defineProperty(BaseError.prototype, "name", {
  configurable: true,
  get(this: BaseError): string {
    return this.type ?? this.constructor.name;
  },
});

/** True for any Trellis error, also one made by another copy of this package. */
export function isBaseError(value: unknown): value is BaseError {
  return typeof value === "object" && value !== null && BRAND in value;
}

interface RandomSource {
  getRandomValues(into: Uint8Array): Uint8Array;
}

/** 128 random bits as 32 hex characters: an occurrence id needs no order and no clock. */
function randomId(): string {
  const { crypto } = globalThis as { crypto?: RandomSource };
  if (crypto === undefined)
    throw new TypeError("globalThis.crypto is missing: Trellis needs Node 20 or a browser");
  let text = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) text += byte.toString(16).padStart(2, "0");
  return text;
}
