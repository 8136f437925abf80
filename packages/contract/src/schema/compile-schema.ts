import type { CompiledSchema } from "./compiled-schema.ts";
import type { SchemaLike } from "./schema-like.ts";
import { compileStandard, isStandardSchema } from "./standard-compiled.ts";
import { compileTypeBox } from "./typebox-compiled.ts";

const compiled = new WeakMap<object, CompiledSchema>();

/**
 * Makes a schema ready for use. Cheap and cached per schema object: the work (code generation, JSON Schema) is done
 * at the first use of each part.
 */
export function compileSchema(schema: SchemaLike): CompiledSchema {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const made = isStandardSchema(schema) ? compileStandard(schema) : compileTypeBox(schema);
  compiled.set(schema, made);
  return made;
}
