/**
 * The text form of NATS keys ("nkeys"): base32 of prefix, 32 key bytes, CRC-16. Only encoding lives here; signing
 * goes through node:crypto, which is some 300 times faster than the nkeys library.
 */

/** First byte of the encoded form: it makes the first letter (A, N, U, X; S for a seed). */
const PREFIX = { account: 0, server: 13 << 3, user: 20 << 3, curve: 23 << 3 } as const;
const SEED_PREFIX = 18 << 3;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export type NkeyKind = keyof typeof PREFIX;

/** The public form: `A...` for an account, `U...` for a user, `X...` for a curve (encryption) key. */
export function encodePublicNkey(kind: NkeyKind, key: Uint8Array): string {
  return encode([PREFIX[kind]], key);
}

/** The secret form: `SA...`, `SU...`, `SX...`. Never for a log or an error. */
export function encodeSeedNkey(kind: NkeyKind, seed: Uint8Array): string {
  const prefix = PREFIX[kind];
  return encode([SEED_PREFIX | (prefix >> 5), (prefix & 31) << 3], seed);
}

/** Reads the public form of a given kind; undefined when it is anything else, or its check sum is wrong. */
export function decodePublicNkey(kind: NkeyKind, text: string): Uint8Array | undefined {
  const bytes = decode(text, 35);
  return bytes?.[0] === PREFIX[kind] ? bytes.subarray(1, 33) : undefined;
}

/** Reads the secret form; undefined when it is none, or its check sum is wrong. */
export function decodeSeedNkey(text: string): { kind: NkeyKind; seed: Uint8Array } | undefined {
  const bytes = decode(text, 36);
  const [first, second] = [bytes?.[0], bytes?.[1]];
  if (bytes === undefined || first === undefined || second === undefined) return undefined;
  if ((first & 0xf8) !== SEED_PREFIX) return undefined;
  const prefix = ((first & 7) << 5) | (second >> 3);
  const kind = KINDS.find((candidate) => PREFIX[candidate] === prefix);
  return kind === undefined ? undefined : { kind, seed: bytes.subarray(2, 34) };
}

const KINDS: readonly NkeyKind[] = ["account", "user", "curve"];

function encode(prefix: readonly number[], key: Uint8Array): string {
  if (key.length !== 32) throw new RangeError("a NATS key has 32 bytes");
  const body = Uint8Array.from([...prefix, ...key]);
  const sum = crc16(body);
  return base32(Uint8Array.from([...body, sum & 0xff, sum >> 8]));
}

function decode(text: string, length: number): Uint8Array | undefined {
  const bytes = fromBase32(text);
  if (bytes === undefined || bytes.length !== length) return undefined;
  const sum = crc16(bytes.subarray(0, length - 2));
  return bytes[length - 2] === (sum & 0xff) && bytes[length - 1] === sum >> 8 ? bytes : undefined;
}

/** CRC-16/XMODEM: polynomial 0x1021, start 0. */
function crc16(data: Uint8Array): number {
  let crc = 0;
  for (const byte of data) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
    crc &= 0xffff;
  }
  return crc;
}

/** RFC 4648, no padding. */
function base32(data: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of data) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += ALPHABET[(value >> (bits - 5)) & 31];
  }
  return bits === 0 ? text : text + ALPHABET[(value << (5 - bits)) & 31];
}

/** Canonical only: the bits that are left over must be zero. */
function fromBase32(text: string): Uint8Array | undefined {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    if (digit < 0) return undefined;
    value = ((value << 5) | digit) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((value >> bits) & 0xff);
    }
  }
  return bits < 5 && (value & ((1 << bits) - 1)) === 0 ? Uint8Array.from(bytes) : undefined;
}
