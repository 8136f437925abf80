import type { JsonObject, JsonValue } from "@trellis/result";
import { isRecord } from "../schema/walk.ts";

/** The alternatives of a schema. */
export interface Branches {
  readonly branches: readonly JsonValue[];
  /** `oneOf`: exactly one may match. */
  readonly exclusive: boolean;
}

/** Splits `anyOf`, `oneOf` and lists of types into alternatives; what stands beside them goes into each. */
export function branchesOf(schema: JsonObject): Branches | undefined {
  for (const keyword of ["anyOf", "oneOf"] as const) {
    const list = schema[keyword];
    if (!Array.isArray(list)) continue;
    const { [keyword]: _, ...beside } = schema;
    const alone = Object.keys(beside).every((key) => key === "$defs" || key === "$id");
    const branches = (list as readonly JsonValue[]).map((branch) =>
      alone ? branch : { ...beside, allOf: [...conjuncts(beside), branch] },
    );
    return { branches, exclusive: keyword === "oneOf" };
  }
  const { type, ...rest } = schema as JsonObject & { readonly type?: JsonValue };
  if (!Array.isArray(type) || type.length < 2) return undefined;
  return { branches: type.map((one: JsonValue) => ({ ...rest, type: one })), exclusive: false };
}

function conjuncts(schema: JsonObject): readonly JsonValue[] {
  const { allOf } = schema as { readonly allOf?: JsonValue };
  return Array.isArray(allOf) ? allOf : [];
}

/**
 * Whether alternatives exclude each other by a constant: a required member that has another constant in each. Then
 * `oneOf` means the same as `anyOf`.
 */
export function isTagged(branches: readonly JsonValue[], resolve: (schema: JsonValue) => JsonValue): boolean {
  const objects = branches.map((branch) => {
    const resolved = resolve(branch);
    return isRecord(resolved) ? flatten(resolved, resolve) : resolved;
  });
  const [first] = objects;
  if (!objects.every(isRecord) || !isRecord(first)) return false;
  const names = isRecord(first["properties"]) ? Object.keys(first["properties"]) : [];
  return names.some((name) => {
    const tags = objects.map((branch) => constantOf(branch, name));
    return tags.every((tag) => tag !== undefined) && new Set(tags).size === tags.length;
  });
}

function constantOf(schema: JsonObject, name: string): string | undefined {
  const { properties, required } = schema as {
    readonly properties?: JsonValue;
    readonly required?: JsonValue;
  };
  if (!Array.isArray(required) || !required.includes(name) || !isRecord(properties)) return undefined;
  const member = properties[name];
  if (!isRecord(member)) return undefined;
  const value = member["const"];
  return value === undefined ? undefined : JSON.stringify(value);
}

/**
 * Writes a conjunction as one schema, as far as that is exact: members of different names, bounds of different kinds.
 * What cannot be written so is dropped, which makes the schema wider and so the comparison stricter.
 */
export function flatten(schema: JsonObject, resolve: (schema: JsonValue) => JsonValue): JsonObject {
  const { allOf, ...rest } = schema as JsonObject & { readonly allOf?: JsonValue };
  if (!Array.isArray(allOf)) return schema;
  let flat: JsonObject = rest;
  for (const part of allOf as readonly JsonValue[]) {
    const resolved = resolve(part);
    if (isRecord(resolved)) flat = both(flat, flatten(resolved, resolve));
  }
  return flat;
}

function both(a: JsonObject, b: JsonObject): JsonObject {
  const merged: Record<string, JsonValue | undefined> = { ...a };
  for (const [keyword, value] of Object.entries(b)) {
    const present = merged[keyword];
    if (present === undefined) merged[keyword] = value;
    else if (keyword === "properties" && isRecord(present) && isRecord(value))
      merged[keyword] = { ...value, ...present };
    else if (keyword === "required" && Array.isArray(present) && Array.isArray(value)) {
      merged[keyword] = [...new Set<JsonValue>([...present, ...value])];
    }
  }
  return merged;
}
