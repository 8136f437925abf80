import type { JsonObject, JsonValue } from "@trellis/result";

/**
 * Keywords that say nothing about which values fit. `default` is one of them: JSON Schema makes it an annotation,
 * and the wire carries the input form, in which a default has not been filled in.
 */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  "$comment",
  "$schema",
  "default",
  "deprecated",
  "description",
  "examples",
  "readOnly",
  "title",
  "writeOnly",
]);

/** Keywords whose value is a record of schemas by a name of the author's choice: the names are no keywords. */
const SCHEMA_RECORDS: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** Keywords whose value is data, never to be looked into: a constant may well be an object with a `title`. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "required", "dependentRequired", "type"]);

/** A JSON Schema without annotations. A property that is called `title` is no annotation and stays. */
export function stripAnnotations(schema: JsonObject): JsonObject {
  const stripped: Record<string, JsonValue | undefined> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(keyword) || value === undefined) continue;
    stripped[keyword] = DATA.has(keyword) ? value : stripValue(value, SCHEMA_RECORDS.has(keyword));
  }
  return stripped;
}

function stripValue(value: JsonValue, isRecord: boolean): JsonValue {
  if (isArray(value)) return value.map((item) => stripValue(item, false));
  if (typeof value !== "object" || value === null) return value;
  if (!isRecord) return stripAnnotations(value);
  const record: Record<string, JsonValue> = {};
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) define(record, name, stripValue(member, false));
  }
  return record;
}

/** Own property whatever its name, `__proto__` included. */
function define(record: Record<string, JsonValue>, name: string, value: JsonValue): void {
  Object.defineProperty(record, name, { value, enumerable: true, writable: true, configurable: true });
}

/** `Array.isArray` does not narrow readonly arrays. */
function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
