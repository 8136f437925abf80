import { allocate } from "../bytes/allocate.ts";
import { readU32, readU64, writeU32, writeU64 } from "../bytes/integers.ts";
import { checkMac, FRAME_VERSION, frameFlags, MAC_LENGTH, writeMac } from "../frames/header.ts";
import type { MacKey, Port } from "../port/port.ts";
import {
  FEED_CHALLENGE_LABEL,
  FEED_FRAME,
  FEED_GONE_LABEL,
  MAX_FRAME_SESSIONS,
  SESSION_ID_LENGTH,
} from "./feed-layout.ts";

/** version, kind, epoch, nonce */
const HEADER = 14;

/** `challenge`: answer for these sessions. `gone`: the provider has these sessions no more. */
export type FeedChallengeKind = "challenge" | "gone";

/** A provider's word about several sessions of one caller; it travels to the subject of one of them. */
export interface FeedChallengeInput {
  readonly kind: FeedChallengeKind;
  /** The epoch of the route whose reply key is used. */
  readonly epoch: number;
  /** Random, 48 bits; 0 for `gone`. */
  readonly nonce: number;
  /** 1 to 1024 sessions of 16 bytes. */
  readonly sessions: readonly Uint8Array[];
  readonly subject: string;
  readonly key: MacKey;
}

export interface FeedChallenge {
  readonly kind: FeedChallengeKind;
  readonly epoch: number;
  readonly nonce: number;
  /** Views of the frame. */
  readonly sessions: readonly Uint8Array[];
  readonly signedPart: Uint8Array;
  readonly mac: Uint8Array;
}

/** Encodes and authenticates a challenge. Throws a `RangeError` on a wrong count or id. */
export function encodeFeedChallenge(port: Port, input: FeedChallengeInput): Uint8Array {
  const { sessions, kind } = input;
  if (sessions.length < 1 || sessions.length > MAX_FRAME_SESSIONS) {
    throw new RangeError("A challenge names 1 to 1024 sessions.");
  }
  const bytes = allocate(HEADER + sessions.length * SESSION_ID_LENGTH + MAC_LENGTH);
  bytes[0] = FRAME_VERSION;
  bytes[1] = FEED_FRAME[kind];
  writeU32(bytes, 2, input.epoch);
  writeU64(bytes, 6, input.nonce);
  let at = HEADER;
  for (const session of sessions) {
    if (session.length !== SESSION_ID_LENGTH) throw new RangeError("A session id is 16 bytes.");
    bytes.set(session, at);
    at += SESSION_ID_LENGTH;
  }
  writeMac(port, bytes, { label: labelOf(kind), subject: input.subject, reply: "", key: input.key });
  return bytes;
}

/** Decodes a challenge without copying; `undefined` for any bytes that are not exactly one. */
export function decodeFeedChallenge(_port: Port, bytes: Uint8Array): FeedChallenge | undefined {
  const flags = frameFlags(bytes);
  if (flags !== FEED_FRAME.challenge && flags !== FEED_FRAME.gone) return undefined;
  const kind: FeedChallengeKind = flags === FEED_FRAME.gone ? "gone" : "challenge";
  const end = bytes.length - MAC_LENGTH;
  const count = (end - HEADER) / SESSION_ID_LENGTH;
  if (!Number.isInteger(count) || count < 1 || count > MAX_FRAME_SESSIONS) return undefined;
  const nonce = readU64(bytes, 6);
  if (nonce === undefined || (kind === "gone" && nonce !== 0)) return undefined;
  const sessions: Uint8Array[] = [];
  for (let at = HEADER; at < end; at += SESSION_ID_LENGTH) {
    sessions.push(bytes.subarray(at, at + SESSION_ID_LENGTH));
  }
  const epoch = readU32(bytes, 2);
  return { kind, epoch, nonce, sessions, signedPart: bytes.subarray(0, end), mac: bytes.subarray(end) };
}

/** Whether the challenge was made by the holder of the reply key for exactly this subject. */
export function verifyFeedChallenge(
  port: Port,
  input: { frame: Pick<FeedChallenge, "kind" | "signedPart" | "mac">; subject: string; key: MacKey },
): boolean {
  const { frame, subject, key } = input;
  return checkMac(port, frame, { label: labelOf(frame.kind), subject, reply: "", key });
}

function labelOf(kind: FeedChallengeKind): string {
  return kind === "challenge" ? FEED_CHALLENGE_LABEL : FEED_GONE_LABEL;
}
