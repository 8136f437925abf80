import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { hasLoneSurrogate, utf8Bytes, utf8Text } from "../bytes/utf8.ts";

// A key is any text but the empty one. `/` parts it into segments, and each segment is one token of the subject, so
// that `orders/` is a filter which the broker itself applies. No key can act as a wildcard, reach another bucket or
// share a subject with another key, and what stands in the broker can be read by any NATS tool.

/** Segments that stand as they are. Anything else, the empty segment included, is `=` and base64url. */
const PLAIN = /^[A-Za-z0-9_-]+$/;
const ALL_PLAIN = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+)*$/;

/** Most characters of an encoded key: with the rest of a request it must fit a line of the broker's protocol (4 KiB). */
export const MAX_KV_KEY_LENGTH = 3_000;

/** Why the text can be no key; `undefined` when it can. */
export function kvKeyProblem(key: string): string | undefined {
  if (typeof key !== "string") return "is not text";
  if (key === "") return "is empty";
  if (ALL_PLAIN.test(key)) return key.length > MAX_KV_KEY_LENGTH ? "is too long" : undefined;
  if (hasLoneSurrogate(key)) return "has a lone surrogate, which has no UTF-8 form";
  // The cheap bound first: base64url takes at least 4/3 of the length.
  return key.length > MAX_KV_KEY_LENGTH || encode(key).length > MAX_KV_KEY_LENGTH ? "is too long" : undefined;
}

/** The subject tokens of a key. Throws a `TypeError` where {@link kvKeyProblem} names a problem. */
export function encodeKvKey(key: string): string {
  if (ALL_PLAIN.test(key) && key.length <= MAX_KV_KEY_LENGTH) return key.replaceAll("/", ".");
  const problem = kvKeyProblem(key);
  if (problem !== undefined) throw new TypeError(`A key ${problem}.`);
  return encode(key);
}

/** The key of subject tokens; `undefined` unless they are exactly what {@link encodeKvKey} gives for some key. */
export function decodeKvKey(encoded: string): string | undefined {
  if (!encoded.includes("=")) {
    const key = encoded.replaceAll(".", "/");
    return ALL_PLAIN.test(key) ? key : undefined;
  }
  const segments: string[] = [];
  for (const token of encoded.split(".")) {
    const segment = decodeSegment(token);
    if (segment === undefined) return undefined;
    segments.push(segment);
  }
  const key = segments.join("/");
  return key === "" ? undefined : key;
}

/**
 * The narrowest subject tokens, wildcard included, that hold every key which begins with the prefix. `exact` says
 * that they hold nothing else; where it is false the rest is told apart by the keys themselves.
 */
export function kvPrefixFilter(prefix: string): { readonly tokens: string; readonly exact: boolean } {
  const end = prefix.lastIndexOf("/");
  if (end === -1) return { tokens: ">", exact: prefix === "" };
  if (hasLoneSurrogate(prefix))
    throw new TypeError("A prefix has a lone surrogate, which has no UTF-8 form.");
  const tokens = prefix.length > MAX_KV_KEY_LENGTH ? "" : encode(prefix.slice(0, end));
  if (tokens === "" || tokens.length > MAX_KV_KEY_LENGTH) throw new TypeError("A prefix is too long.");
  return { tokens: `${tokens}.>`, exact: end === prefix.length - 1 };
}

function encode(key: string): string {
  return key.split("/").map(encodeSegment).join(".");
}

function encodeSegment(segment: string): string {
  return PLAIN.test(segment) ? segment : `=${toBase64Url(utf8Bytes(segment))}`;
}

function decodeSegment(token: string): string | undefined {
  if (PLAIN.test(token)) return token;
  if (!token.startsWith("=")) return undefined;
  const bytes = fromBase64Url(token.slice(1));
  const text = bytes === undefined ? undefined : utf8Text(bytes);
  return text === undefined || PLAIN.test(text) || text.includes("/") ? undefined : text;
}
