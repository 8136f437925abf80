import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { utf8Bytes, utf8Text } from "../bytes/utf8.ts";
import { storeKeyProblem } from "./store-key.ts";

/** Where a listing goes on: after `key`, among the keys with `prefix`. Opaque to its holder. */
export function encodeListCursor(position: { prefix: string; key: string }): string {
  return toBase64Url(utf8Bytes(JSON.stringify([1, position.prefix, position.key])));
}

/** The key after which a listing with this prefix goes on; `undefined` for the cursor of another listing, or of none. */
export function decodeListCursor(cursor: string, prefix: string): string | undefined {
  const bytes = fromBase64Url(cursor);
  const text = bytes === undefined ? undefined : utf8Text(bytes);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value) || value.length !== 3 || value[0] !== 1 || value[1] !== prefix) return undefined;
  const key: unknown = value[2];
  return typeof key === "string" && key.startsWith(prefix) && storeKeyProblem(key) === undefined
    ? key
    : undefined;
}
