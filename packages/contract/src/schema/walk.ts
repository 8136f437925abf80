import type { JsonObject, JsonValue } from "@trellis/result";

/** A schema inside a schema, with the JSON pointer that leads to it. */
export interface ChildSchema {
  readonly path: string;
  readonly schema: JsonValue;
}

/** Keywords that hold one schema. */
export const ONE_KEYWORDS: readonly string[] = [
  "additionalItems",
  "additionalProperties",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
];

/** Keywords that hold a list of schemas. */
export const LIST_KEYWORDS: readonly string[] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/** Keywords that hold schemas by a name of the author's choice. */
export const RECORD_KEYWORDS: readonly string[] = [
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
];

/** The schemas directly inside a schema: what stands under a keyword, never what a constant or a name looks like. */
export function childSchemas(schema: JsonObject): readonly ChildSchema[] {
  const children: ChildSchema[] = [];
  for (const keyword of ONE_KEYWORDS) {
    const value = schema[keyword];
    if (isSchema(value)) children.push({ path: `/${keyword}`, schema: value });
  }
  for (const keyword of LIST_KEYWORDS) {
    const value = schema[keyword];
    if (!Array.isArray(value)) continue;
    value.forEach((item: JsonValue, index) => {
      children.push({ path: `/${keyword}/${index}`, schema: item });
    });
  }
  for (const keyword of RECORD_KEYWORDS) {
    const value = schema[keyword];
    if (!isRecord(value)) continue;
    for (const [name, member] of Object.entries(value)) {
      if (isSchema(member)) children.push({ path: `/${keyword}/${escapePointer(name)}`, schema: member });
    }
  }
  return children;
}

/** The same schema with every schema directly inside it changed. */
export function mapChildSchemas(schema: JsonObject, change: (child: JsonObject) => JsonObject): JsonObject {
  const changed = (value: JsonValue): JsonValue => (isRecord(value) ? change(value) : value);
  const result: Record<string, JsonValue | undefined> = { ...schema };
  for (const keyword of ONE_KEYWORDS) {
    const value = result[keyword];
    if (isRecord(value)) result[keyword] = change(value);
  }
  for (const keyword of LIST_KEYWORDS) {
    const value = result[keyword];
    if (Array.isArray(value)) result[keyword] = value.map(changed);
  }
  for (const keyword of RECORD_KEYWORDS) {
    const value = result[keyword];
    if (isRecord(value)) result[keyword] = mapMembers(value, changed);
  }
  return result;
}

/** `Object.fromEntries` makes own members whatever their name, `__proto__` included. */
function mapMembers(record: JsonObject, change: (member: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(
    Object.entries(record).map(([name, member]) => [name, member === undefined ? undefined : change(member)]),
  );
}

/** One segment of a JSON pointer (RFC 6901). */
export function escapePointer(segment: string): string {
  return segment.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** True for a JSON object. */
export function isRecord(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSchema(value: JsonValue | undefined): value is JsonObject | boolean {
  return typeof value === "boolean" || isRecord(value);
}
