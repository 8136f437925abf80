/**
 * NATS key text ("nkeys"): base32 of a prefix byte, 32 raw bytes and a CRC-16 (XMODEM, little endian).
 * Only the text form lives here; the keys themselves are node:crypto's.
 */

/** What a key is for; the value is the prefix byte. */
export const nkeyKind = {
  account: 0 << 3,
  server: 13 << 3,
  user: 20 << 3,
  curve: 23 << 3,
} as const;

export type NkeyKind = keyof typeof nkeyKind;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The text of a public key, e.g. `U...` for a user. */
export function encodeNkey(kind: NkeyKind, raw: Uint8Array): string {
  const bytes = new Uint8Array(35);
  bytes[0] = nkeyKind[kind];
  bytes.set(raw, 1);
  const check = crc16(bytes.subarray(0, 33));
  bytes[33] = check & 0xff;
  bytes[34] = check >>> 8;
  return base32(bytes);
}

/** The raw 32 bytes of a public key of this kind, or `undefined` for any other text. */
export function decodeNkey(kind: NkeyKind, text: string): Uint8Array | undefined {
  if (text.length !== 56) return undefined;
  const bytes = fromBase32(text);
  if (bytes === undefined || bytes.length !== 35 || bytes[0] !== nkeyKind[kind]) return undefined;
  const check = (bytes[33] ?? 0) | ((bytes[34] ?? 0) << 8);
  return crc16(bytes.subarray(0, 33)) === check ? bytes.slice(1, 33) : undefined;
}

/** Base32 without padding, as NATS writes keys and token ids. */
export function base32(bytes: Uint8Array): string {
  let bits = 0;
  let value = 0;
  let text = "";
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet[(value >>> bits) & 31];
    }
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? text + alphabet[(value << (5 - bits)) & 31] : text;
}

function fromBase32(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8));
  let bits = 0;
  let value = 0;
  let at = 0;
  for (const character of text) {
    const digit = alphabet.indexOf(character);
    if (digit < 0) return undefined;
    value = ((value << 5) | digit) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (value >>> bits) & 0xff;
    }
  }
  return bytes;
}

function crc16(bytes: Uint8Array): number {
  let check = 0;
  for (const byte of bytes) {
    check ^= byte << 8;
    for (let bit = 0; bit < 8; bit++)
      check = ((check & 0x8000) !== 0 ? (check << 1) ^ 0x1021 : check << 1) & 0xffff;
  }
  return check;
}
