import type { JsonObject, JsonValue } from "@trellis/result";
import { DefinitionError } from "../errors/definition-error.ts";
import { findCatastrophe } from "./pattern/find-catastrophe.ts";
import { childSchemas } from "./walk.ts";

const TYPES: ReadonlySet<unknown> = new Set([
  "array",
  "boolean",
  "integer",
  "null",
  "number",
  "object",
  "string",
]);
const MAX_DEPTH = 64;

/**
 * Refuses a JSON Schema that no contract can hold, naming the place in it: types that are not JSON's, patterns that
 * are no regular expressions or that take exponential time, and nesting deeper than any value may be.
 */
export function requireJsonSchema(schema: JsonValue, path = "", depth = 0): void {
  if (typeof schema !== "object" || schema === null) return;
  if (depth > MAX_DEPTH) throw refused(path, `it nests deeper than ${MAX_DEPTH} levels`);
  const node = schema as JsonObject;
  const { type, pattern, patternProperties } = node as {
    type?: JsonValue;
    pattern?: JsonValue;
    patternProperties?: JsonValue;
  };
  for (const one of Array.isArray(type) ? type : [type]) {
    if (one === undefined || TYPES.has(one)) continue;
    throw refused(
      path,
      `JSON has no type ${JSON.stringify(one)}`,
      "Use a schema of JSON values, or one that transforms from them",
    );
  }
  if (typeof pattern === "string") requireSafePattern(pattern, `${path}/pattern`);
  if (typeof patternProperties === "object" && patternProperties !== null) {
    for (const key of Object.keys(patternProperties)) requireSafePattern(key, `${path}/patternProperties`);
  }
  for (const child of childSchemas(node)) requireJsonSchema(child.schema, `${path}${child.path}`, depth + 1);
}

function requireSafePattern(pattern: string, path: string): void {
  try {
    new RegExp(pattern, "u");
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "it does not compile";
    throw refused(path, `${JSON.stringify(pattern)} is no regular expression with the u flag (${reason})`);
  }
  const problem = findCatastrophe(pattern);
  if (problem === undefined) return;
  throw refused(
    path,
    `the pattern ${JSON.stringify(pattern)} ${problem}`,
    "Write it so that each text can be matched in one way only, for example ^[a-z]+(-[a-z]+)*$ and not ^([a-z]+-?)*$",
  );
}

function refused(path: string, problem: string, hint?: string): DefinitionError {
  return new DefinitionError({
    place: path === "" ? "schema" : `schema ${path}`,
    problem,
    ...(hint !== undefined && { hint }),
  });
}
