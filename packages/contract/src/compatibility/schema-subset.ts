import type { JsonObject, JsonValue } from "@trellis/result";
import { canonicalJson } from "../json/canonical-json.ts";
import { stripAnnotations } from "../schema/annotations.ts";
import { isRecord } from "../schema/walk.ts";
import { compareArrays, compareBounds } from "./compare-keywords.ts";
import { compareObjects } from "./compare-objects.ts";
import type { Comparison, Located, SubsetFinding } from "./comparison.ts";
import { isFinite as isFiniteSet, valuesOutside } from "./finite-values.ts";
import { type Branches, branchesOf, flatten, isTagged } from "./schema-shape.ts";

/**
 * Reasons why a value that fits `from` may not fit `to`; none means that every value fits.
 *
 * Works on a stated subset of JSON Schema and errs on one side only: what it does not understand in `to` counts as a
 * reason, unless `from` says the very same. One thing is taken for granted: a sender leaves members out that its open
 * schema does not name (so that adding an optional member is no break).
 */
export function subsetFindings(from: JsonObject, to: JsonObject): readonly SubsetFinding[] {
  const [given, taken] = [stripAnnotations(from), stripAnnotations(to)];
  return compare({
    from: { schema: given, root: given },
    to: { schema: taken, root: taken },
    path: "",
    assumed: new Set(),
    compare,
  });
}

function compare(given: Comparison): readonly SubsetFinding[] {
  const resolved = resolveBoth(given);
  if (resolved === "assumed") return [];
  const { from, to, path } = resolved;
  if (to.schema === true || from.schema === false) return [];
  if (to.schema === false) return [{ path, reason: "no value is accepted here any more" }];
  const wide = asObject(from.schema);
  const narrow = asObject(to.schema);
  if (Object.keys(narrow).length === 0) return [];
  if (isFiniteSet(wide)) return valuesOutside(wide, { schema: narrow, root: to.root }, path);
  const alternatives = branchesOf(wide);
  if (alternatives !== undefined) {
    return alternatives.branches.flatMap((branch) =>
      compare({ ...resolved, from: { ...from, schema: branch } }),
    );
  }
  const conjuncts = narrow["allOf"];
  if (Array.isArray(conjuncts)) {
    const { allOf: _, ...rest } = narrow;
    return [rest, ...(conjuncts as readonly JsonValue[])].flatMap((schema) =>
      compare({ ...resolved, to: { ...to, schema } }),
    );
  }
  const choice = branchesOf(narrow);
  if (choice !== undefined) return compareToChoice(resolved, choice);
  const flat = flatten(wide, (schema) => dereference({ schema, root: from.root }));
  return compareKeywords({ ...resolved, from: { ...from, schema: flat } }, flat, narrow);
}

function compareToChoice(comparison: Comparison, choice: Branches): readonly SubsetFinding[] {
  const { path, to } = comparison;
  if (choice.exclusive && !isTagged(choice.branches, (schema) => dereference({ schema, root: to.root }))) {
    return sameText(comparison)
      ? []
      : [{ path, reason: "oneOf without a distinguishing constant cannot be compared" }];
  }
  let closest: readonly SubsetFinding[] | undefined;
  for (const schema of choice.branches) {
    const findings = compare({ ...comparison, to: { ...to, schema } });
    if (findings.length === 0) return [];
    if (closest === undefined || findings.length < closest.length) closest = findings;
  }
  if (choice.branches.length === 1) return closest ?? [];
  return [{ path, reason: `none of the alternatives takes it (closest: ${closest?.[0]?.reason ?? "none"})` }];
}

function compareKeywords(comparison: Comparison, from: JsonObject, to: JsonObject): readonly SubsetFinding[] {
  const { path } = comparison;
  return [
    ...compareTypes(from, to, path),
    ...compareBounds(from, to, path),
    ...compareObjects(comparison, from, to),
    ...compareArrays(comparison, from, to),
    ...compareRest(comparison, from, to),
  ];
}

function compareTypes(from: JsonObject, to: JsonObject, path: string): readonly SubsetFinding[] {
  if (to["const"] !== undefined || to["enum"] !== undefined) {
    const equal = same(from["const"], to["const"]) && same(from["enum"], to["enum"]);
    return equal ? [] : [{ path, reason: "only listed values are accepted" }];
  }
  const taken = typeNames(to);
  if (taken === undefined) return [];
  const given = typeNames(from);
  const expected = [...taken].join(" or ");
  if (given === undefined) return [{ path, reason: `only ${expected} is accepted` }];
  const outside = [...given].filter(
    (type) => !taken.has(type) && !(type === "integer" && taken.has("number")),
  );
  return outside.length === 0
    ? []
    : [{ path, reason: `${outside.join(" or ")} is not accepted, only ${expected}` }];
}

/** Stands for a reference into nowhere: whatever it meant, it cannot be compared. */
const UNRESOLVED = "$unresolved";

/** Keywords whose meaning hangs on what stands beside them: they pass only when everything is the same. */
const CONTEXTUAL: ReadonlySet<string> = new Set([
  ...[
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "if",
    "then",
    "else",
  ],
  UNRESOLVED,
]);

/** Keywords that {@link compareKeywords} and {@link compare} understand. */
const UNDERSTOOD: ReadonlySet<string> = new Set([
  ...["$anchor", "$defs", "$id", "definitions", "type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"],
  ...["minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems"],
  ...[
    "properties",
    "patternProperties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "additionalItems",
  ],
]);

/** What is not understood passes only when both say the same and it refers to nothing. */
function compareRest(comparison: Comparison, from: JsonObject, to: JsonObject): readonly SubsetFinding[] {
  const findings: SubsetFinding[] = [];
  for (const [keyword, value] of Object.entries(to)) {
    if (value === undefined || UNDERSTOOD.has(keyword)) continue;
    const unchanged = CONTEXTUAL.has(keyword)
      ? keyword !== UNRESOLVED && same(from, to)
      : same(from[keyword], value);
    if (unchanged && !canonicalJson(to).includes('"$ref"')) continue;
    findings.push({ path: comparison.path, reason: `${keyword} was added or changed` });
  }
  return findings;
}

function typeNames(schema: JsonObject): ReadonlySet<string> | undefined {
  const { type } = schema as { readonly type?: JsonValue };
  if (typeof type === "string") return new Set([type]);
  return Array.isArray(type) ? new Set(type.map(String)) : undefined;
}

/** Resolves references on both sides. A pair of references that is already open is taken to fit. */
function resolveBoth(comparison: Comparison): Comparison | "assumed" {
  const { from, to } = comparison;
  const fromRef = isRecord(from.schema) && typeof from.schema["$ref"] === "string";
  const toRef = isRecord(to.schema) && typeof to.schema["$ref"] === "string";
  if (!fromRef && !toRef) return comparison;
  const key = canonicalJson([from.schema, to.schema]);
  if (comparison.assumed.has(key)) return "assumed";
  return {
    ...comparison,
    from: { root: rootOf(from), schema: dereference(from) },
    to: { root: rootOf(to), schema: dereference(to) },
    assumed: new Set([...comparison.assumed, key]),
  };
}

/** TypeBox puts the definitions of a recursive type beside the reference, wherever that stands. */
function rootOf({ schema, root }: Located): JsonObject {
  return isRecord(schema) && isRecord(schema["$defs"]) ? schema : root;
}

/** Follows `$ref` within the document: `#/$defs/x`, or TypeBox's bare names. An unknown target accepts nothing. */
function dereference(located: Located): JsonValue {
  const root = rootOf(located);
  let at: JsonValue = located.schema;
  for (let hops = 0; isRecord(at) && typeof at["$ref"] === "string"; hops++) {
    if (hops > 32) return { [UNRESOLVED]: at["$ref"] };
    const { $ref, ...siblings } = at as JsonObject & { readonly $ref: string };
    const target = lookUp($ref, root);
    if (target === undefined) return { [UNRESOLVED]: $ref };
    const { $defs: _, ...others } = siblings as { readonly $defs?: JsonValue };
    at = Object.keys(others).length === 0 ? target : { ...others, allOf: [target] };
  }
  return at;
}

function lookUp(reference: string, root: JsonObject): JsonValue | undefined {
  const segments = reference.startsWith("#") ? reference.slice(1).split("/").slice(1) : ["$defs", reference];
  let at: JsonValue | undefined = root;
  for (const segment of segments) {
    const name = decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~");
    at =
      isRecord(at) && Object.hasOwn(at, name)
        ? at[name]
        : Array.isArray(at)
          ? (at[Number(name)] as JsonValue)
          : undefined;
  }
  return at;
}

function sameText({ from, to }: Comparison): boolean {
  return same(from.schema, to.schema) && !canonicalJson(to.schema).includes('"$ref"');
}

/** Equality of JSON values, key order ignored. */
function same(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return canonicalJson(a) === canonicalJson(b);
}

function asObject(schema: JsonValue): JsonObject {
  return isRecord(schema) ? schema : {};
}
