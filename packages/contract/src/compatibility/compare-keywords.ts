import type { JsonObject, JsonValue } from "@trellis/result";
import { isMultipleOf } from "../schema/multiple-of.ts";
import { isRecord } from "../schema/walk.ts";
import { type Comparison, insideOf, type SubsetFinding } from "./comparison.ts";

type Bound = readonly [keyword: string, reason: string];

const LOWER: readonly Bound[] = [
  ["minLength", "shorter texts are refused"],
  ["minItems", "shorter lists are refused"],
  ["minProperties", "objects with fewer members are refused"],
];
const UPPER: readonly Bound[] = [
  ["maxLength", "longer texts are refused"],
  ["maxItems", "longer lists are refused"],
  ["maxProperties", "objects with more members are refused"],
];

/** Compares limits: those of `from` must be at least as tight as those of `to`. */
export function compareBounds(from: JsonObject, to: JsonObject, path: string): readonly SubsetFinding[] {
  const findings: SubsetFinding[] = [];
  for (const [keyword, reason] of LOWER) {
    const least = numberAt(to, keyword) ?? 0;
    if ((numberAt(from, keyword) ?? 0) < least)
      findings.push({ path, reason: `${reason} (${keyword} ${least})` });
  }
  for (const [keyword, reason] of UPPER) {
    const most = numberAt(to, keyword) ?? Infinity;
    if ((numberAt(from, keyword) ?? Infinity) > most)
      findings.push({ path, reason: `${reason} (${keyword} ${most})` });
  }
  if (!isAbove(from, to)) findings.push({ path, reason: "smaller numbers are refused" });
  if (!isBelow(from, to)) findings.push({ path, reason: "larger numbers are refused" });
  const step = numberAt(to, "multipleOf");
  if (step !== undefined && !isStep(from, step))
    findings.push({ path, reason: `only multiples of ${step} are accepted` });
  if (to["uniqueItems"] === true && from["uniqueItems"] !== true)
    findings.push({ path, reason: "repeated items are refused" });
  return findings;
}

function isAbove(from: JsonObject, to: JsonObject): boolean {
  const closed = numberAt(to, "minimum") ?? -Infinity;
  const open = numberAt(to, "exclusiveMinimum") ?? -Infinity;
  const least = numberAt(from, "minimum") ?? -Infinity;
  const above = numberAt(from, "exclusiveMinimum") ?? -Infinity;
  return Math.max(least, above) >= closed && (open === -Infinity || least > open || above >= open);
}

function isBelow(from: JsonObject, to: JsonObject): boolean {
  const closed = numberAt(to, "maximum") ?? Infinity;
  const open = numberAt(to, "exclusiveMaximum") ?? Infinity;
  const most = numberAt(from, "maximum") ?? Infinity;
  const below = numberAt(from, "exclusiveMaximum") ?? Infinity;
  return Math.min(most, below) <= closed && (open === Infinity || most < open || below <= open);
}

function isStep(from: JsonObject, step: number): boolean {
  const given = numberAt(from, "multipleOf") ?? (from["type"] === "integer" ? 1 : undefined);
  return given !== undefined && isMultipleOf(given, step);
}

/** Compares items of arrays. */
export function compareArrays(
  comparison: Comparison,
  from: JsonObject,
  to: JsonObject,
): readonly SubsetFinding[] {
  if (!couldBe(from, "array")) return [];
  const given = tuple(from);
  const taken = tuple(to);
  const findings: SubsetFinding[] = [];
  const inside = insideOf(comparison);
  const most = Math.max(given.first.length, taken.first.length);
  const longest = numberAt(from, "maxItems") ?? Infinity;
  for (let index = 0; index < most && index < longest; index++) {
    findings.push(
      ...inside(String(index), given.first[index] ?? given.rest, taken.first[index] ?? taken.rest),
    );
  }
  if (longest > most) findings.push(...inside("*", given.rest, taken.rest));
  return findings;
}

interface Tuple {
  readonly first: readonly JsonValue[];
  readonly rest: JsonValue;
}

/** Leading items and the rest, in the words of draft 2020-12 or of those before it. */
function tuple(schema: JsonObject): Tuple {
  const { prefixItems, items, additionalItems } = schema as Record<string, JsonValue | undefined>;
  if (Array.isArray(items)) return { first: items, rest: additionalItems ?? true };
  return { first: Array.isArray(prefixItems) ? prefixItems : [], rest: items ?? additionalItems ?? true };
}

export function couldBe(schema: JsonObject, type: string): boolean {
  return schema["type"] === undefined || schema["type"] === type;
}

export function numberAt(schema: JsonObject, keyword: string): number | undefined {
  const value = schema[keyword];
  return typeof value === "number" ? value : undefined;
}

export function recordAt(schema: JsonObject, keyword: string): JsonObject {
  const value = schema[keyword];
  return isRecord(value) ? value : {};
}

export function listAt(schema: JsonObject, keyword: string): readonly string[] {
  const value = schema[keyword];
  return Array.isArray(value) ? value.map(String) : [];
}
