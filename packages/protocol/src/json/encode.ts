// Writing a value as JSON text that reads back as exactly that value, or refusing it by name.
//
// `JSON.stringify` changes values without a word (NaN becomes null, a Date a string, a Map `{}`), so the value is
// looked over first. The look is one quick pass that only says yes or no; places are named by a second, slow pass
// that runs for refused values alone.

import { findIssues, isPlain } from "./find-issues.ts";
import { type JsonIssue, MAX_JSON_DEPTH } from "./issue.ts";

export type JsonEncoding =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly issues: readonly JsonIssue[] };

const FINE = 0;
/** Better written by ourselves: a -0, which `JSON.stringify` would write as 0, or long text, on which it is slow. */
const OURS = 1;
const REFUSED = 2;
type Verdict = typeof FINE | typeof OURS | typeof REFUSED;

/** From this length on it pays to look first whether a text needs escapes: most do not. */
const LONG_TEXT = 1024;
/** Everything below U+0080 that JSON text cannot hold as it stands. */
const ESCAPED = ['"', "\\", ...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code))];

const NULL: JsonEncoding = { ok: true, text: "null" };

/**
 * JSON text of a value that reads back equal to it. Object members that are `undefined` are left out; `undefined`
 * as the whole value is `null` (a void output). Refused, with the place named: NaN and infinities, bigints,
 * functions, symbols, `undefined` in arrays, instances of classes (Date, Map, typed arrays, ...), objects with
 * `toJSON`, members called `__proto__`, lone surrogates, cycles, and nesting deeper than 64. Never throws.
 */
export function encodeJson(value: unknown): JsonEncoding {
  if (value === undefined) return NULL;
  try {
    const verdict = scan(value, 0);
    if (verdict === REFUSED) return refuse(value);
    const text = verdict === OURS ? write(value) : JSON.stringify(value);
    // A lone surrogate is written as an escape, and nothing else as `\ud...`: only text that holds the escape, or
    // spells it out itself, needs the slow look.
    return text.includes("\\ud") && findIssues(value).length > 0 ? refuse(value) : { ok: true, text };
  } catch {
    // A getter or proxy that throws, or text too long for the platform.
    return { ok: false, issues: [{ path: "", message: "cannot be read as JSON" }] };
  }
}

function refuse(value: unknown): JsonEncoding {
  const issues = findIssues(value);
  return {
    ok: false,
    issues: issues.length > 0 ? issues : [{ path: "", message: "cannot be written as JSON" }],
  };
}

function scan(value: unknown, depth: number): Verdict {
  switch (typeof value) {
    case "string":
      return value.length < LONG_TEXT ? FINE : OURS;
    case "boolean":
      return FINE;
    case "number":
      if (value === 0) return Object.is(value, -0) ? OURS : FINE;
      return Number.isFinite(value) ? FINE : REFUSED;
    case "object":
      if (value === null) return FINE;
      // A cycle ends here too: it runs straight into the bound.
      if (depth === MAX_JSON_DEPTH) return REFUSED;
      return Array.isArray(value) ? scanItems(value, depth) : scanMembers(value, depth);
    case "bigint":
    case "function":
    case "symbol":
    case "undefined":
      return REFUSED;
  }
}

function scanItems(items: readonly unknown[], depth: number): Verdict {
  if ("toJSON" in items) return REFUSED;
  let verdict: Verdict = FINE;
  for (let index = 0; index < items.length; index += 1) {
    const found = scan(items[index], depth + 1);
    if (found === REFUSED) return REFUSED;
    if (found === OURS) verdict = OURS;
  }
  return verdict;
}

function scanMembers(object: object, depth: number): Verdict {
  if (!isPlain(object)) return REFUSED;
  const members = object as Readonly<Record<string, unknown>>;
  let verdict: Verdict = FINE;
  // `for in` is twice as fast as `Object.keys`. That it also shows inherited members matters only where someone
  // has polluted a prototype, and then it can only refuse more.
  for (const key in members) {
    const member = members[key];
    if (member === undefined) continue;
    if (key === "__proto__") return REFUSED;
    const found = scan(member, depth + 1);
    if (found === REFUSED) return REFUSED;
    if (found === OURS) verdict = OURS;
  }
  return verdict;
}

/** JSON text of a value that the scan has passed. */
function write(value: unknown): string {
  if (typeof value === "string") return writeText(value);
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  const members: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${write(member)}`);
  }
  return `{${members.join(",")}}`;
}

function writeText(text: string): string {
  return text.length < LONG_TEXT || needsEscape(text) ? JSON.stringify(text) : `"${text}"`;
}

/** A search for each character, as odd as it looks, is four times as fast as one pattern for all of them. */
function needsEscape(text: string): boolean {
  return !text.isWellFormed() || ESCAPED.some((character) => text.includes(character));
}
