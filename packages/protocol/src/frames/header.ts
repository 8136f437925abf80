// The layout that request and control frames share, and the bounds of every frame. All integers are big-endian.
//
//   request  version u8 | flags u8 = 0    | epoch u32 | digest 32 | counter u64 | issued at u64 | calls   | mac 32
//   control  version u8 | kind  u8 = 1, 2 | epoch u32 | digest 32 | counter u64 | issued at u64 | request ids | mac 32
//   reply    version u8 | flags u8 = 0    | epoch u32 | results | mac 32
//   refusal  version u8 | flags u8 = 1    | code u8
//
//   call     flags u8 | request id 16 | remaining ms u32 | trace 25 (flag 1) | length u16, tracestate (flag 2)
//            | origin 16 (flag 4) | length u32, JSON
//   result   request id 16 | status u8 | length u32, JSON
//
// Invariants:
// 1. Decoding is total: any bytes give a frame or `undefined`, never a throw, never a copy.
// 2. One frame has one spelling: unknown flags, spare bytes and integers above 2^53 - 1 are refused.
// 3. The MAC covers every byte before it, and by its domain label, subject and reply subject also the place.

import { toBase64Url } from "../bytes/base64url.ts";
import { readU32, readU64, writeU32, writeU64 } from "../bytes/integers.ts";
import { placeTranscript } from "../bytes/transcript.ts";
import type { MacKey, Port } from "../port/port.ts";

export const FRAME_VERSION = 1;
export const MAC_LENGTH = 32;
export const REQUEST_ID_LENGTH = 16;
export const DIGEST_LENGTH = 32;
/** version, flags, epoch, digest, counter, issued at */
export const HEADER_LENGTH = 54;

/** How many calls, and how many results, one frame may hold. */
export const MAX_FRAME_CALLS = 64;
/** How many request ids one control frame may name. */
export const MAX_CONTROL_IDS = 1024;

/** What a request or control frame says about its sender. */
export interface FrameHeader {
  /** The epoch of the route key that the MAC key was derived from. */
  readonly epoch: number;
  /** Digest of the sender's authorization: 32 bytes. */
  readonly digest: Uint8Array;
  /** Counts the frames of one authorization on one route; never used twice. */
  readonly counter: number;
  /** Milliseconds since the epoch, by the sender's corrected clock. */
  readonly issuedAt: number;
}

/** A decoded header. `digest` is a view of the frame's bytes; `digestText` its base64url. */
export interface DecodedHeader extends FrameHeader {
  readonly digestText: string;
}

export interface MacPlace {
  readonly label: string;
  readonly subject: string;
  readonly reply: string;
}

export function writeHeader(into: Uint8Array, flags: number, header: FrameHeader): void {
  if (header.digest.length !== DIGEST_LENGTH) throw new RangeError("An authorization digest is 32 bytes.");
  into[0] = FRAME_VERSION;
  into[1] = flags;
  writeU32(into, 2, header.epoch);
  into.set(header.digest, 6);
  writeU64(into, 38, header.counter);
  writeU64(into, 46, header.issuedAt);
}

/** The flags byte of a frame of our version; `undefined` when it is too short or of another version. */
export function frameFlags(bytes: Uint8Array): number | undefined {
  return bytes.length > 2 && bytes[0] === FRAME_VERSION ? bytes[1] : undefined;
}

/** The header of bytes whose version and flags are checked already. */
export function readHeader(bytes: Uint8Array): DecodedHeader | undefined {
  if (bytes.length < HEADER_LENGTH + MAC_LENGTH) return undefined;
  const counter = readU64(bytes, 38);
  const issuedAt = readU64(bytes, 46);
  if (counter === undefined || issuedAt === undefined) return undefined;
  const digest = bytes.subarray(6, 38);
  return { epoch: readU32(bytes, 2), digest, digestText: toBase64Url(digest), counter, issuedAt };
}

/** Computes the MAC of everything before the last 32 bytes and writes it there. */
export function writeMac(port: Port, bytes: Uint8Array, place: MacPlace & { key: MacKey }): void {
  const end = bytes.length - MAC_LENGTH;
  const first = placeTranscript(place.label, place.subject, place.reply);
  bytes.set(port.mac(place.key, first, bytes.subarray(0, end)), end);
}

/** Whether the MAC is that of the signed part at this place; constant time. */
export function checkMac(
  port: Port,
  frame: { readonly signedPart: Uint8Array; readonly mac: Uint8Array },
  place: MacPlace & { key: MacKey },
): boolean {
  const first = placeTranscript(place.label, place.subject, place.reply);
  return port.equal(port.mac(place.key, first, frame.signedPart), frame.mac);
}
