import { hasLoneSurrogate } from "../bytes/utf8.ts";
import type { Port } from "../port/port.ts";
import { type JsonIssue, MAX_JSON_DEPTH, MAX_JSON_ISSUES, pointerStep } from "./issue.ts";

export type JsonDecoding =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly JsonIssue[] };

/**
 * How much of a value has to be walked, by the looks of its text: nothing, names and depth, or the characters of all
 * its texts too. A refused name may hide behind an escape, half a surrogate pair can come in no other way: the text
 * was UTF-8. Plain searches beat patterns.
 */
function lookOf(text: string): Look | undefined {
  const escapes = text.includes("\\u");
  if (escapes && (text.includes("\\ud") || text.includes("\\uD"))) return "characters";
  return escapes || text.includes("__proto__") || mayBeDeep(text) ? "names" : undefined;
}

type Look = "names" | "characters";

/**
 * The value of JSON text from someone else. Empty text is `null`: a call without an input, a result without an
 * output. Refused, with the place named: text that is not JSON, members called `__proto__` (however they are
 * escaped), lone surrogates (which we could not write again), and nesting deeper than 64. Never throws, and never
 * quotes the text.
 */
export function decodeJson(text: string): JsonDecoding {
  if (text === "") return { ok: true, value: null };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse("is not JSON");
  }
  // The walk is taken only by text that could have something to find, and names places only when it has.
  const look = lookOf(text);
  if (look === undefined || isAllowed(value, 0, look)) return { ok: true, value };
  const issues: JsonIssue[] = [];
  visit({ value, path: "", depth: 0 }, issues);
  return { ok: false, issues };
}

/** {@link decodeJson} of UTF-8 bytes; invalid UTF-8 is refused too. */
export function decodeJsonBytes(port: Port, bytes: Uint8Array): JsonDecoding {
  let text: string;
  try {
    text = port.utf8.read(bytes, 0, bytes.length);
  } catch {
    return refuse("is not UTF-8");
  }
  return decodeJson(text);
}

export type JsonListDecoding =
  | { readonly ok: true; readonly values: readonly unknown[] }
  | { readonly ok: false; readonly issues: readonly JsonIssue[] };

/** {@link decodeJson} of an array whose members are values of their own: each may be 64 deep, as if it came alone. */
export function decodeJsonList(port: Port, bytes: Uint8Array): JsonListDecoding {
  let text: string;
  let values: unknown;
  try {
    text = port.utf8.read(bytes, 0, bytes.length);
    values = JSON.parse(text);
  } catch {
    return { ok: false, issues: [{ path: "", message: "is not JSON" }] };
  }
  if (!Array.isArray(values)) return { ok: false, issues: [{ path: "", message: "is not a list" }] };
  const look = lookOf(text);
  if (look === undefined || isAllowed(values, -1, look)) return { ok: true, values };
  const issues: JsonIssue[] = [];
  visit({ value: values, path: "", depth: -1 }, issues);
  return { ok: false, issues };
}

function refuse(message: string): JsonDecoding {
  return { ok: false, issues: [{ path: "", message }] };
}

/** Whether the text has more opening brackets than the depth allowed; a few of them are counted in no time. */
function mayBeDeep(text: string): boolean {
  if (text.length <= 2 * MAX_JSON_DEPTH) return false;
  return hasMoreThan(text, "{", MAX_JSON_DEPTH / 2) || hasMoreThan(text, "[", MAX_JSON_DEPTH / 2);
}

function hasMoreThan(text: string, bracket: string, count: number): boolean {
  let at = text.indexOf(bracket);
  for (let found = 0; at !== -1; found += 1) {
    if (found === count) return true;
    at = text.indexOf(bracket, at + 1);
  }
  return false;
}

function isAllowed(value: unknown, depth: number, look: Look): boolean {
  if (typeof value === "string") return look === "names" || !hasLoneSurrogate(value);
  if (typeof value !== "object" || value === null) return true;
  if (depth === MAX_JSON_DEPTH) return false;
  // By index: `for in` over an array makes a string of each index.
  if (Array.isArray(value)) return value.every((item) => isAllowed(item, depth + 1, look));
  const members = value as Readonly<Record<string, unknown>>;
  for (const key in members) {
    if (key === "__proto__" || (look === "characters" && hasLoneSurrogate(key))) return false;
    if (!isAllowed(members[key], depth + 1, look)) return false;
  }
  return true;
}

function visit(place: { value: unknown; path: string; depth: number }, issues: JsonIssue[]): void {
  const { value, path, depth } = place;
  if (issues.length >= MAX_JSON_ISSUES) return;
  if (typeof value === "string" && hasLoneSurrogate(value))
    issues.push({ path, message: "has a lone surrogate" });
  if (typeof value !== "object" || value === null) return;
  if (depth === MAX_JSON_DEPTH) {
    issues.push({ path, message: `is nested deeper than ${MAX_JSON_DEPTH}` });
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    // Of an array the keys are its indices.
    if (key === "__proto__")
      issues.push({ path: pointerStep(path, key), message: "must not be called __proto__" });
    else if (hasLoneSurrogate(key)) issues.push({ path, message: "has a member name with a lone surrogate" });
    else visit({ value: member, path: pointerStep(path, key), depth: depth + 1 }, issues);
  }
}
