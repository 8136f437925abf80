import type { JsonObject } from "@trellis/result";

/** One reason why a value does not fit a schema. */
export interface SchemaIssue {
  /** JSON pointer to the place (RFC 6901); empty for the whole value. */
  readonly path: string;
  readonly message: string;
}

/** Outcome of reading a received value. */
export type Decoded =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] };

/** A schema made ready for use, whichever library it came from. */
export interface CompiledSchema {
  /** JSON Schema (draft 2020-12) of the input form, annotations kept. */
  readonly json: JsonObject;
  /** False when `decode` is known to give the value unchanged. */
  readonly transforms: boolean;
  /** Sender side: `undefined` when the value fits. The value itself goes out unchanged. */
  issues(value: unknown): readonly SchemaIssue[] | undefined;
  /** Receiver side: checks, then gives the output form. The given value is never changed. */
  decode(value: unknown): Decoded;
}
