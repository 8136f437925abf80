import { BaseError, type BaseErrorOptions, type JsonValue, type SerializedError } from "@trellis/result";
import type { CompiledSchema } from "../schema/compiled-schema.ts";

/** What a declared error is made from, beside its data. */
export interface DeclaredErrorOptions extends Omit<BaseErrorOptions, "details"> {
  readonly message?: string;
}

/** The serialised form of a declared error. */
export interface SerializedDeclaredError extends SerializedError {
  readonly data?: JsonValue;
}

/** Options of a declared error's constructor: `data` exactly when the error declares a schema for it. */
export type DeclaredErrorInit<Data> = [Data] extends [void]
  ? [options?: DeclaredErrorOptions]
  : [options: DeclaredErrorOptions & { readonly data: Data }];

/** An expected failure that an API declares: the same class at the provider and at the caller. */
export abstract class DeclaredError<Name extends string = string, Data = unknown> extends BaseError {
  readonly kind = "declared";
  /** Set by the class that `defineError` makes. Not abstract here, so that such a class can be extended. */
  declare readonly type: Name;
  /** What the error tells beside its name, in the form that the wire carries. */
  readonly data: Data;

  constructor(message: string, data: Data, options: DeclaredErrorOptions = {}) {
    super(message, options);
    this.data = data;
  }

  override toSerializable(): SerializedDeclaredError {
    const base = super.toSerializable();
    return this.data === undefined ? base : { ...base, data: this.data as JsonValue };
  }
}

/** The class that `defineError` makes. */
export interface DeclaredErrorClass<Name extends string = string, Data = unknown> {
  new (...init: DeclaredErrorInit<Data>): DeclaredError<Name, Data>;
  readonly errorName: Name;
  /** Schema of `data`; `undefined` for an error without. */
  readonly dataSchema: CompiledSchema | undefined;
}

/** Any class that `defineError` makes. */
export interface AnyDeclaredErrorClass {
  new (options: never): DeclaredError;
  readonly errorName: string;
  readonly dataSchema: CompiledSchema | undefined;
}
