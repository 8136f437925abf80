import { allocate } from "../bytes/allocate.ts";
import { readU64, writeU64 } from "../bytes/integers.ts";
import {
  checkMac,
  type DecodedHeader,
  type FrameHeader,
  frameFlags,
  HEADER_LENGTH,
  MAC_LENGTH,
  readHeader,
  writeHeader,
  writeMac,
} from "../frames/header.ts";
import type { MacKey, Port } from "../port/port.ts";
import { FEED_CONTROL_LABEL, MAX_FRAME_SESSIONS, SESSION_ID_LENGTH } from "./feed-layout.ts";

/** The flags byte of a feed's control frame; 1 and 2 are the control frames of RPC. */
export const FEED_CONTROL_FLAGS = 3;
/** session, kind, nonce, received, consumed */
const NOTE_LENGTH = SESSION_ID_LENGTH + 1 + 8 + 8 + 8;

/**
 * What a note does beside stating what was received and consumed. `state`: something moved since the last note, if
 * only a part of a frame (credit, and proof that the consumer reads); `answer`: answers the challenge of this nonce; `resume`: asks for everything after `received` again; `close`: the consumer is done.
 */
export const FEED_NOTE_KINDS = ["state", "answer", "resume", "close"] as const;

export type FeedNoteKind = (typeof FEED_NOTE_KINDS)[number];

/** What a consumer says about one session. Counts are totals: notes may get lost, repeated or reordered. */
export interface FeedNote {
  /** 16 bytes; of a decoded note a view of the frame. */
  readonly session: Uint8Array;
  readonly kind: FeedNoteKind;
  /** Of the challenge that is answered; else 0. */
  readonly nonce: number;
  /** Every frame up to this sequence has arrived. */
  readonly received: number;
  /** Every frame up to this sequence is in the hands of the application: this is the credit. */
  readonly consumed: number;
}

export interface FeedControlInput {
  readonly header: FrameHeader;
  /** 1 to 1024 notes. */
  readonly notes: readonly FeedNote[];
  readonly subject: string;
  /** Where "gone" is to be said, or `""`. */
  readonly reply: string;
  readonly key: MacKey;
}

export interface FeedControlFrame extends DecodedHeader {
  readonly notes: readonly FeedNote[];
  readonly signedPart: Uint8Array;
  readonly mac: Uint8Array;
}

/** Encodes and authenticates a control frame. Throws a `RangeError` on a wrong count or id. */
export function encodeFeedControl(port: Port, input: FeedControlInput): Uint8Array {
  const { notes, subject, reply, key } = input;
  if (notes.length < 1 || notes.length > MAX_FRAME_SESSIONS) {
    throw new RangeError("A control frame holds 1 to 1024 notes.");
  }
  const bytes = allocate(HEADER_LENGTH + notes.length * NOTE_LENGTH + MAC_LENGTH);
  writeHeader(bytes, FEED_CONTROL_FLAGS, input.header);
  let at = HEADER_LENGTH;
  for (const note of notes) {
    if (note.session.length !== SESSION_ID_LENGTH) throw new RangeError("A session id is 16 bytes.");
    bytes.set(note.session, at);
    bytes[at + 16] = FEED_NOTE_KINDS.indexOf(note.kind) + 1;
    writeU64(bytes, at + 17, note.nonce);
    writeU64(bytes, at + 25, note.received);
    writeU64(bytes, at + 33, note.consumed);
    at += NOTE_LENGTH;
  }
  writeMac(port, bytes, { label: FEED_CONTROL_LABEL, subject, reply, key });
  return bytes;
}

/** Whether the bytes are the control frame of a feed, if they are one at all. */
export function isFeedControl(bytes: Uint8Array): boolean {
  return frameFlags(bytes) === FEED_CONTROL_FLAGS;
}

/** Decodes a control frame without copying; `undefined` for any bytes that are not exactly one. */
export function decodeFeedControl(_port: Port, bytes: Uint8Array): FeedControlFrame | undefined {
  const header = isFeedControl(bytes) ? readHeader(bytes) : undefined;
  if (header === undefined) return undefined;
  const end = bytes.length - MAC_LENGTH;
  const count = (end - HEADER_LENGTH) / NOTE_LENGTH;
  if (!Number.isInteger(count) || count < 1 || count > MAX_FRAME_SESSIONS) return undefined;
  const notes: FeedNote[] = [];
  for (let at = HEADER_LENGTH; at < end; at += NOTE_LENGTH) {
    const note = readNote(bytes, at);
    if (note === undefined) return undefined;
    notes.push(note);
  }
  return { ...header, notes, signedPart: bytes.subarray(0, end), mac: bytes.subarray(end) };
}

function readNote(bytes: Uint8Array, at: number): FeedNote | undefined {
  const kind = FEED_NOTE_KINDS[(bytes[at + 16] ?? 0) - 1];
  const nonce = readU64(bytes, at + 17);
  const received = readU64(bytes, at + 25);
  const consumed = readU64(bytes, at + 33);
  if (kind === undefined || nonce === undefined || received === undefined) return undefined;
  if (consumed === undefined || consumed > received || (nonce !== 0) !== (kind === "answer"))
    return undefined;
  return { session: bytes.subarray(at, at + SESSION_ID_LENGTH), kind, nonce, received, consumed };
}

/** Whether the frame was made by the holder of the request key for exactly this subject and reply subject. */
export function verifyFeedControl(
  port: Port,
  input: {
    frame: Pick<FeedControlFrame, "signedPart" | "mac">;
    subject: string;
    reply: string;
    key: MacKey;
  },
): boolean {
  const { frame, subject, reply, key } = input;
  return checkMac(port, frame, { label: FEED_CONTROL_LABEL, subject, reply, key });
}
