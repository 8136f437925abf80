import type { JsonObject, JsonValue } from "@trellis/result";
import { Check } from "typebox/schema";
import type { SubsetFinding } from "./comparison.ts";

/** Whether a schema lists its values, so that they can be tried one by one. */
export function isFinite(schema: JsonObject): boolean {
  return schema["const"] !== undefined || Array.isArray(schema["enum"]) || schema["type"] === "null";
}

/** Listed values that another schema refuses. */
export function valuesOutside(
  from: JsonObject,
  to: { readonly schema: JsonObject; readonly root: JsonObject },
  path: string,
): readonly SubsetFinding[] {
  const listed = valuesOf(from).filter((value) => Check(from, value));
  const { $defs, definitions } = to.root;
  const target = {
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
    ...to.schema,
  };
  return listed
    .filter((value) => !accepts(target, value))
    .map((value) => ({ path, reason: `${JSON.stringify(value)} is not accepted` }));
}

function valuesOf(schema: JsonObject): readonly JsonValue[] {
  const { const: constant, enum: list } = schema as { readonly const?: JsonValue; readonly enum?: JsonValue };
  if (constant !== undefined) return [constant];
  return Array.isArray(list) ? list : [null];
}

/** A schema that cannot be evaluated (a reference into nowhere) accepts nothing. */
function accepts(schema: JsonObject, value: JsonValue): boolean {
  try {
    return Check(schema, value);
  } catch {
    return false;
  }
}
