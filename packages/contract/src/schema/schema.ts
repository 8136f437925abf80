import type { JsonObject } from "@trellis/result";
import type { StandardSchemaV1 } from "./standard-schema.ts";

/** A Standard Schema together with the JSON Schema that its library cannot give. */
export interface SchemaOptions {
  /** JSON Schema (draft 2020-12) of what goes in. It is what an artifact holds and what `trellis check` compares. */
  readonly json: JsonObject;
}

/**
 * Gives a Standard Schema its JSON Schema, for libraries and schemas that give none. Validation stays the library's.
 *
 * ```ts
 * const Amount = schema(someLibrary.decimal(), { json: { type: "string", pattern: "^[0-9]{1,12}$" } });
 * ```
 */
export function schema<S extends StandardSchemaV1>(
  standard: S,
  options: SchemaOptions,
): StandardSchemaV1<
  NonNullable<S["~standard"]["types"]>["input"],
  NonNullable<S["~standard"]["types"]>["output"]
>;
export function schema(standard: StandardSchemaV1, { json }: SchemaOptions): StandardSchemaV1 {
  const { version, vendor, validate } = standard["~standard"];
  const props = { version, vendor, validate, jsonSchema: { input: () => json } };
  return { "~standard": props };
}
