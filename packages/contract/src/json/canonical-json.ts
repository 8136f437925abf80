import { BaseError } from "@trellis/result";

/** A value that has no canonical JSON. */
export class CanonicalJsonError extends BaseError {
  readonly kind = "call";
  readonly type = "CanonicalJsonError";
  /** JSON pointer to the offending place. */
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`${path === "" ? "The value" : path} ${problem}`);
    this.path = path;
  }
}

/** With the `u` flag a surrogate matches only where it has no partner. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Deepest nesting that canonical JSON takes: far over any contract, far under any stack. */
const MAX_DEPTH = 256;

/**
 * The canonical JSON text of a value (RFC 8785): members sorted by UTF-16 code units, numbers as ECMAScript prints
 * them, no white space, no Unicode normalisation. A member that is `undefined` is left out.
 *
 * Throws {@link CanonicalJsonError} for what has no one text: lone surrogates, NaN and infinities, values that are
 * not JSON, cycles and nesting deeper than 256.
 */
export function canonicalJson(value: unknown): string {
  return write(value, [], 0);
}

function write(value: unknown, path: string[], depth: number): string {
  switch (typeof value) {
    case "string":
      return writeString(value, path);
    case "number":
      if (!Number.isFinite(value)) throw refused(path, `is ${value}, which JSON cannot hold`);
      // JSON.stringify writes -0 as 0, as RFC 8785 asks.
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      if (depth >= MAX_DEPTH) throw refused(path.slice(0, 8), `is nested deeper than ${MAX_DEPTH} levels`);
      return Array.isArray(value) ? writeArray(value, path, depth) : writeObject(value, path, depth);
    default:
      throw refused(path, `is a ${typeof value}, which JSON cannot hold`);
  }
}

function writeString(value: string, path: string[]): string {
  if (LONE_SURROGATE.test(value)) throw refused(path, "holds a lone surrogate, which is not Unicode text");
  return JSON.stringify(value);
}

function writeArray(value: readonly unknown[], path: string[], depth: number): string {
  let text = "[";
  for (let index = 0; index < value.length; index++) {
    path.push(String(index));
    text += (index === 0 ? "" : ",") + write(value[index], path, depth + 1);
    path.pop();
  }
  return `${text}]`;
}

function writeObject(value: object, path: string[], depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw refused(path, `is a ${value.constructor?.name ?? "class instance"}, which JSON cannot hold`);
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  // The default comparison of strings is by UTF-16 code units: exactly the order of RFC 8785.
  members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  let text = "{";
  for (const [key, member] of members) {
    path.push(key);
    text += `${text === "{" ? "" : ","}${writeString(key, path)}:${write(member, path, depth + 1)}`;
    path.pop();
  }
  return `${text}}`;
}

function refused(path: readonly string[], problem: string): CanonicalJsonError {
  const pointer = path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return new CanonicalJsonError(pointer, problem);
}
