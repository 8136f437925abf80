import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { canonicalJson } from "./canonical-json.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** The one digest of Trellis: base64url(SHA-256(UTF-8(canonical JSON))), 43 characters. */
export function digestOf(value: unknown): string {
  return digestOfText(canonicalJson(value));
}

/** The digest of a text that is already canonical. */
export function digestOfText(canonical: string): string {
  return base64Url(sha256(utf8ToBytes(canonical)));
}

/** Unpadded base64url (RFC 4648, section 5). */
function base64Url(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const word = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += ALPHABET.charAt(word >> 18) + ALPHABET.charAt((word >> 12) & 63);
    if (left > 1) text += ALPHABET.charAt((word >> 6) & 63);
    if (left > 2) text += ALPHABET.charAt(word & 63);
  }
  return text;
}
