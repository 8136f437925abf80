import type { JsonObject } from "@trellis/result";
import { DefinitionError } from "../errors/definition-error.ts";
import type { CompiledSchema, Decoded, SchemaIssue } from "./compiled-schema.ts";
import type { StandardIssue, StandardJsonProps, StandardSchemaV1 } from "./standard-schema.ts";

/** True for anything that speaks Standard Schema. arktype's schemas are functions, so `typeof` does not decide. */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const props: unknown = "~standard" in value ? value["~standard"] : undefined;
  return (
    typeof props === "object" && props !== null && "validate" in props && typeof props.validate === "function"
  );
}

/** Compiles a Standard Schema. */
export function compileStandard(schema: StandardSchemaV1): CompiledSchema {
  return new StandardCompiled(schema);
}

class StandardCompiled implements CompiledSchema {
  /** A Standard Schema does not say whether it transforms, so we take it that it may. */
  readonly transforms = true;
  readonly #schema: StandardSchemaV1;
  #json: JsonObject | undefined;

  constructor(schema: StandardSchemaV1) {
    this.#schema = schema;
  }

  get json(): JsonObject {
    this.#json ??= jsonSchemaOf(this.#schema);
    return this.#json;
  }

  issues(value: unknown): readonly SchemaIssue[] | undefined {
    const decoded = this.decode(value);
    return decoded.ok ? undefined : decoded.issues;
  }

  decode(value: unknown): Decoded {
    try {
      const result = this.#schema["~standard"].validate(value);
      if (result instanceof Promise) {
        // The abandoned promise may reject; nobody will look at it.
        result.catch(() => undefined);
        return failed("the schema threw, or it validates asynchronously, which a contract cannot wait for");
      }
      if (result.issues === undefined) return { ok: true, value: result.value };
      return { ok: false, issues: result.issues.map(toIssue) };
    } catch (thrown) {
      return failed(thrown instanceof Error ? thrown.message : "the schema threw");
    }
  }
}

function failed(message: string): Decoded {
  return { ok: false, issues: [{ path: "", message }] };
}

function toIssue(issue: StandardIssue): SchemaIssue {
  let path = "";
  for (const segment of issue.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    path += `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return { path, message: issue.message };
}

/** The JSON Schema of the input form: by Standard JSON Schema, else by a `toJsonSchema` method. */
function jsonSchemaOf(schema: StandardSchemaV1): JsonObject {
  const { vendor } = schema["~standard"];
  try {
    const made = askForJson(schema);
    if (made !== undefined) return JSON.parse(JSON.stringify(made)) as JsonObject;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DefinitionError({
      place: `A ${vendor} schema`,
      problem: `its input cannot be written as JSON Schema (${reason})`,
      hint: "Let it take a string or number and transform that, or give the JSON Schema: schema(yourSchema, { json })",
      cause,
    });
  }
  throw new DefinitionError({
    place: `A ${vendor} schema`,
    problem: "it does not give JSON Schema",
    hint:
      vendor === "valibot"
        ? "Wrap it: toStandardJsonSchema(yourSchema), from @valibot/to-json-schema"
        : "Give the JSON Schema of its input: schema(yourSchema, { json })",
  });
}

function askForJson(schema: StandardSchemaV1): unknown {
  const standard: StandardSchemaV1["~standard"] & Partial<StandardJsonProps> = schema["~standard"];
  if (standard.jsonSchema !== undefined) return standard.jsonSchema.input({ target: "draft-2020-12" });
  if ("toJsonSchema" in schema && typeof schema.toJsonSchema === "function") return schema.toJsonSchema();
  return undefined;
}
