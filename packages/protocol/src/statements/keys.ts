import { toBase64Url } from "../bytes/base64url.ts";
import { utf8Bytes } from "../bytes/utf8.ts";
import type { Port } from "../port/port.ts";

/** The short name of a public key: the first 22 characters (132 bits) of the base64url of its SHA-256. */
export function keyId(port: Port, publicKey: Uint8Array): string {
  return rootFingerprint(port, publicKey).slice(0, 22);
}

/** The full fingerprint of a public key: what a client pins of the root. */
export function rootFingerprint(port: Port, publicKey: Uint8Array): string {
  return toBase64Url(port.sha256(publicKey));
}

/** The digest of an exact text: of an authorization, the name that it is known by. */
export function textDigest(port: Port, text: string): string {
  return toBase64Url(port.sha256(utf8Bytes(text)));
}
