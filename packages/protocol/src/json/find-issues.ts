import { hasLoneSurrogate } from "../bytes/utf8.ts";
import { type JsonIssue, MAX_JSON_DEPTH, MAX_JSON_ISSUES, pointerStep } from "./issue.ts";

/** Whether the object is a plain record: of no class, in this realm or another, and without a `toJSON`. */
export function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  const rooted =
    prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
  return rooted && !("toJSON" in object && typeof object.toJSON === "function");
}

/** Every place (at most 20) where the value is not what JSON can carry. Slow: only for values that are refused. */
export function findIssues(value: unknown): readonly JsonIssue[] {
  const issues: JsonIssue[] = [];
  visit(value, "", { issues, open: new Set() });
  return issues;
}

interface Search {
  readonly issues: JsonIssue[];
  /** The objects that the walk is inside of. */
  readonly open: Set<object>;
}

function visit(value: unknown, path: string, search: Search): void {
  if (search.issues.length >= MAX_JSON_ISSUES) return;
  const message =
    typeof value === "object" && value !== null ? objectIssue(value, search) : scalarIssue(value);
  if (message !== undefined) {
    search.issues.push({ path, message });
    return;
  }
  if (typeof value !== "object" || value === null) return;
  search.open.add(value);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1)
      visit(value[index], pointerStep(path, index), search);
  } else {
    for (const [key, member] of Object.entries(value)) {
      if (member !== undefined) visitMember({ key, member, path }, search);
    }
  }
  search.open.delete(value);
}

function visitMember(place: { key: string; member: unknown; path: string }, search: Search): void {
  const { key, member, path } = place;
  if (hasLoneSurrogate(key)) {
    search.issues.push({ path, message: "has a member name with a lone surrogate" });
  } else if (key === "__proto__") {
    search.issues.push({ path: pointerStep(path, key), message: "must not be called __proto__" });
  } else {
    visit(member, pointerStep(path, key), search);
  }
}

function scalarIssue(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return hasLoneSurrogate(value) ? "has a lone surrogate" : undefined;
    case "number":
      return Number.isFinite(value) ? undefined : "is not a finite number";
    case "boolean":
    case "object":
      return undefined;
    case "bigint":
    case "function":
    case "symbol":
    case "undefined":
      return `is ${typeof value === "undefined" ? "undefined" : `a ${typeof value}`}, which JSON cannot carry`;
  }
}

function objectIssue(value: object, search: Search): string | undefined {
  if (search.open.has(value)) return "contains itself";
  if (search.open.size >= MAX_JSON_DEPTH) return `is nested deeper than ${MAX_JSON_DEPTH}`;
  if (Array.isArray(value)) return "toJSON" in value ? "has a toJSON" : undefined;
  return isPlain(value) ? undefined : `is ${nameOf(value)}, which JSON cannot carry`;
}

function nameOf(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  const made: unknown =
    typeof prototype === "object" && prototype !== null ? prototype.constructor : undefined;
  const name = typeof made === "function" ? made.name : "";
  return name === "" || name === "Object" ? "an object with a toJSON" : `an instance of ${name}`;
}
