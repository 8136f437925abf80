import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";

const PREFIX = "SHA-256=";

/** How an object's description names its bytes: `SHA-256=` and the padded base64url of the hash. */
export function encodeObjectDigest(sha256: Uint8Array): string {
  return `${PREFIX}${toBase64Url(sha256)}=`;
}

/** The 32 bytes of a digest, also of one without padding (some clients leave it out); `undefined` for anything else. */
export function decodeObjectDigest(digest: string): Uint8Array | undefined {
  if (!digest.startsWith(PREFIX)) return undefined;
  const bytes = fromBase64Url(digest.slice(PREFIX.length).replace(/=$/, ""));
  return bytes?.length === 32 ? bytes : undefined;
}
