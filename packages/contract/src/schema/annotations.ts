import type { JsonObject } from "@trellis/result";
import { mapChildSchemas } from "./walk.ts";

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

/**
 * A JSON Schema without annotations. Only keywords are looked at: a property that is called `title` stays, and so
 * does one inside a constant.
 */
export function stripAnnotations(schema: JsonObject): JsonObject {
  const kept = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !ANNOTATIONS.has(keyword)));
  return mapChildSchemas(kept, stripAnnotations);
}
