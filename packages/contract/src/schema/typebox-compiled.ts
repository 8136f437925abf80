import type { JsonObject } from "@trellis/result";
import { Compile } from "typebox/compile";
import { Clone, DecodeUnsafe, Errors, HasCodec } from "typebox/value";
import type { CompiledSchema, Decoded, SchemaIssue } from "./compiled-schema.ts";
import type { TypeBoxSchema } from "./schema-like.ts";

type Check = (value: unknown) => boolean;

/** Compiles a TypeBox schema; where `Function` is forbidden TypeBox interprets instead, with the same verdicts. */
export function compileTypeBox(schema: TypeBoxSchema): CompiledSchema {
  return new TypeBoxCompiled(schema);
}

class TypeBoxCompiled implements CompiledSchema {
  readonly transforms: boolean;
  readonly #schema: TypeBoxSchema;
  #json: JsonObject | undefined;
  #check: Check | undefined;

  constructor(schema: TypeBoxSchema) {
    this.#schema = schema;
    this.transforms = HasCodec(schema);
  }

  get json(): JsonObject {
    this.#json ??= JSON.parse(JSON.stringify(this.#schema)) as JsonObject;
    return this.#json;
  }

  issues(value: unknown): readonly SchemaIssue[] | undefined {
    this.#check ??= compileCheck(this.#schema);
    return this.#check(value) ? undefined : collectIssues(this.#schema, value);
  }

  decode(value: unknown): Decoded {
    const issues = this.issues(value);
    if (issues !== undefined) return { ok: false, issues };
    if (!this.transforms) return { ok: true, value };
    try {
      return { ok: true, value: DecodeUnsafe({}, this.#schema, Clone(value)) };
    } catch (thrown) {
      return {
        ok: false,
        issues: [{ path: "", message: thrown instanceof Error ? thrown.message : "does not decode" }],
      };
    }
  }
}

function compileCheck(schema: TypeBoxSchema): Check {
  const validator = Compile(schema);
  return (value) => validator.Check(value);
}

function collectIssues(schema: TypeBoxSchema, value: unknown): readonly SchemaIssue[] {
  const issues = Errors(schema, value).map(({ instancePath, message }) => ({ path: instancePath, message }));
  return issues.length === 0 ? [{ path: "", message: "does not fit the schema" }] : issues;
}
