import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { hasLoneSurrogate, utf8Bytes, utf8Length, utf8Text } from "../bytes/utf8.ts";
import { requireToken } from "../subjects/token.ts";

// The layout of NATS' own object store, so that its tools read and write the same objects: the key as padded base64url
// of its UTF-8 in the subject of the description, the bytes in chunks under a name of their own.

/** Longest key, in bytes of UTF-8. */
export const MAX_STORE_KEY_BYTES = 1_024;

/** Why the text can be no key of an object; `undefined` when it can. */
export function storeKeyProblem(key: string): string | undefined {
  if (typeof key !== "string") return "is not text";
  if (key === "") return "is empty";
  if (hasLoneSurrogate(key)) return "has a lone surrogate, which has no UTF-8 form";
  return utf8Length(key) > MAX_STORE_KEY_BYTES ? `is longer than ${MAX_STORE_KEY_BYTES} bytes` : undefined;
}

/** The subject token of a key. Throws a `TypeError` where {@link storeKeyProblem} names a problem. */
export function encodeStoreKey(key: string): string {
  const problem = storeKeyProblem(key);
  if (problem !== undefined) throw new TypeError(`The key of an object ${problem}.`);
  return padded(toBase64Url(utf8Bytes(key)));
}

/** The key of a subject token; `undefined` unless the token is exactly what {@link encodeStoreKey} gives for some key. */
export function decodeStoreKey(token: string): string | undefined {
  const bare = token.replace(/={1,2}$/, "");
  if (padded(bare) !== token) return undefined;
  const bytes = fromBase64Url(bare);
  const key = bytes === undefined ? undefined : utf8Text(bytes);
  return key === undefined || storeKeyProblem(key) !== undefined ? undefined : key;
}

function padded(text: string): string {
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}

/** The stream behind a store. */
export function storeStreamName(name: string): string {
  return `OBJ_${requireToken(name, "store")}`;
}

/** What the subjects of all descriptions start with, without a final dot. */
export function storeMetaPrefix(name: string): string {
  return `$O.${requireToken(name, "store")}.M`;
}

/** What the subjects of all chunks start with, without a final dot. */
export function storeChunkPrefix(name: string): string {
  return `$O.${requireToken(name, "store")}.C`;
}

/** Where a store republishes descriptions, without a final dot: `$O.<name>.M.>` becomes `objw.v1.<name>.>`. */
export function storeWatchPrefix(name: string): string {
  return `objw.v1.${requireToken(name, "store")}`;
}
