import { DefinitionError } from "../errors/definition-error.ts";
import type { CompiledSchema } from "./compiled-schema.ts";
import type { SchemaLike } from "./schema-like.ts";
import { compileStandard, isStandardSchema } from "./standard-compiled.ts";
import { compileTypeBox, isTypeBoxSchema } from "./typebox-compiled.ts";

const compiled = new WeakMap<object, CompiledSchema>();

/**
 * Makes a schema ready for use. Cheap and cached per schema object: the work (code generation, JSON Schema) is done
 * at the first use of each part.
 */
export function compileSchema(schema: SchemaLike): CompiledSchema {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const made = compile(schema);
  compiled.set(schema, made);
  return made;
}

function compile(schema: SchemaLike): CompiledSchema {
  if (isStandardSchema(schema)) return compileStandard(schema);
  if (isTypeBoxSchema(schema)) return compileTypeBox(schema);
  throw new DefinitionError({
    place: "A schema",
    problem: "this is neither a TypeBox schema nor one that speaks Standard Schema",
    hint: "Give a schema of TypeBox 1, zod 4, valibot or arktype; for bare JSON Schema: Type.Unsafe<YourType>(json)",
  });
}
