import type { JsonObject } from "@trellis/result";
import { Compile } from "typebox/compile";
import { Errors, HasCodec } from "typebox/value";
import { DefinitionError } from "../errors/definition-error.ts";
import { checkedSchema } from "./checked-schema.ts";
import type { CompiledSchema, Decoded, SchemaIssue } from "./compiled-schema.ts";
import { CodecFailure, decodeTypeBox } from "./decode-typebox.ts";
import type { TypeBoxSchema } from "./schema-like.ts";

type Check = (value: unknown) => boolean;

/** True for what TypeBox's builders make, told by their marks. */
export function isTypeBoxSchema(value: unknown): value is TypeBoxSchema {
  return typeof value === "object" && value !== null && ("~kind" in value || "~unsafe" in value);
}

/** Compiles a TypeBox schema; where `Function` is forbidden TypeBox interprets instead, with the same verdicts. */
export function compileTypeBox(schema: TypeBoxSchema): CompiledSchema {
  return new TypeBoxCompiled(schema);
}

/**
 * TypeBox gives verdicts; it never corrects. Its `Decode` would fill in defaults, convert texts to numbers and drop
 * unknown members on the way, so only its codecs are run.
 */
class TypeBoxCompiled implements CompiledSchema {
  readonly transforms: boolean;
  readonly #schema: TypeBoxSchema;
  #json: JsonObject | undefined;
  #checked: TypeBoxSchema | undefined;
  #check: Check | undefined;

  constructor(schema: TypeBoxSchema) {
    this.#schema = schema;
    this.transforms = HasCodec(schema);
  }

  get json(): JsonObject {
    this.#json ??= writeJson(this.#schema);
    return this.#json;
  }

  issues(value: unknown): readonly SchemaIssue[] | undefined {
    const check = this.#check ?? this.#prepare();
    return check(value) ? undefined : this.#collect(value);
  }

  decode(value: unknown): Decoded {
    const issues = this.issues(value);
    if (issues !== undefined) return { ok: false, issues };
    if (!this.transforms) return { ok: true, value };
    try {
      return { ok: true, value: decodeTypeBox(this.#schema, value) };
    } catch (thrown) {
      if (!(thrown instanceof CodecFailure)) throw thrown;
      return { ok: false, issues: [{ path: thrown.path, message: thrown.message }] };
    }
  }

  #prepare(): Check {
    this.#checked = checkedSchema(this.#schema);
    const validator = Compile(this.#checked);
    this.#check = (value) => validator.Check(value);
    return this.#check;
  }

  #collect(value: unknown): readonly SchemaIssue[] {
    const found = Errors(this.#checked ?? this.#schema, value);
    const issues = found.map(({ instancePath, message }) => ({
      path: instancePath,
      message: message === "schema is false" ? "must not be there" : message,
    }));
    return issues.length === 0 ? [{ path: "", message: "does not fit the schema" }] : issues;
  }
}

function writeJson(schema: TypeBoxSchema): JsonObject {
  const text = JSON.stringify(schema, (key, value: unknown) => {
    if (value instanceof RegExp) return value.source;
    if (typeof value === "bigint" || typeof value === "function" || typeof value === "symbol") {
      throw new DefinitionError({
        place: "A TypeBox schema",
        problem: `its ${JSON.stringify(key)} is a ${typeof value}, which JSON Schema cannot hold`,
      });
    }
    return value;
  });
  return JSON.parse(text) as JsonObject;
}
