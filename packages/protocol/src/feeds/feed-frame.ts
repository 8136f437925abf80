import { allocate } from "../bytes/allocate.ts";
import { readU64, writeU64 } from "../bytes/integers.ts";
import { checkMac, FRAME_VERSION, frameFlags, MAC_LENGTH, writeMac } from "../frames/header.ts";
import type { MacKey, Port } from "../port/port.ts";
import { FEED_END_REASONS, type FeedEndReason } from "./feed-end.ts";
import {
  FEED_END_LABEL,
  FEED_FRAME,
  FEED_ITEMS_LABEL,
  SESSION_FRAME_HEADER,
  SESSION_ID_LENGTH,
} from "./feed-layout.ts";

/** How many bytes an item frame has beside the JSON text of its items. */
export const FEED_ITEMS_OVERHEAD: number = SESSION_FRAME_HEADER + MAC_LENGTH;

/** What the two frames of a session have in common. */
export interface FeedFramePlace {
  /** The 16 bytes of the session. */
  readonly session: Uint8Array;
  /** Counts the frames of the session, ends included, from 1. */
  readonly sequence: number;
  /** The caller's subject that the frame goes to. */
  readonly subject: string;
  readonly key: MacKey;
}

export interface FeedItemsInput extends FeedFramePlace {
  /** JSON text of an array: the items in order. */
  readonly payload: string;
}

export interface FeedEndInput extends FeedFramePlace {
  readonly reason: FeedEndReason;
  /** JSON text of an error envelope for `failed`, else empty. */
  readonly payload: string;
}

interface DecodedFrame {
  /** Views of the frame. */
  readonly session: Uint8Array;
  readonly sequence: number;
  /** JSON text in UTF-8, unchecked. */
  readonly payload: Uint8Array;
  readonly signedPart: Uint8Array;
  readonly mac: Uint8Array;
}

export interface FeedItemsFrame extends DecodedFrame {
  readonly kind: "items";
}

export interface FeedEndFrame extends DecodedFrame {
  readonly kind: "end";
  readonly reason: FeedEndReason;
}

export type FeedFrame = FeedItemsFrame | FeedEndFrame;

/** Encodes and authenticates a frame of items, in one allocation. */
export function encodeFeedItems(port: Port, input: FeedItemsInput): Uint8Array {
  const length = FEED_ITEMS_OVERHEAD + port.utf8.length(input.payload);
  const bytes = begin(input, { length, kind: FEED_FRAME.items });
  port.utf8.write(bytes, input.payload, SESSION_FRAME_HEADER);
  writeMac(port, bytes, { label: FEED_ITEMS_LABEL, subject: input.subject, reply: "", key: input.key });
  return bytes;
}

/** Encodes and authenticates the last frame of a session. */
export function encodeFeedEnd(port: Port, input: FeedEndInput): Uint8Array {
  const length = FEED_ITEMS_OVERHEAD + 1 + port.utf8.length(input.payload);
  const bytes = begin(input, { length, kind: FEED_FRAME.end });
  bytes[SESSION_FRAME_HEADER] = FEED_END_REASONS.indexOf(input.reason) + 1;
  port.utf8.write(bytes, input.payload, SESSION_FRAME_HEADER + 1);
  writeMac(port, bytes, { label: FEED_END_LABEL, subject: input.subject, reply: "", key: input.key });
  return bytes;
}

function begin(
  { session, sequence }: FeedFramePlace,
  { length, kind }: { length: number; kind: number },
): Uint8Array {
  if (session.length !== SESSION_ID_LENGTH) throw new RangeError("A session id is 16 bytes.");
  const bytes = allocate(length);
  bytes[0] = FRAME_VERSION;
  bytes[1] = kind;
  bytes.set(session, 2);
  writeU64(bytes, 18, sequence);
  return bytes;
}

/** Decodes a frame of items or an end without copying; `undefined` for any bytes that are not exactly one. */
export function decodeFeedFrame(_port: Port, bytes: Uint8Array): FeedFrame | undefined {
  const kind = frameFlags(bytes);
  if (kind !== FEED_FRAME.items && kind !== FEED_FRAME.end) return undefined;
  const start = SESSION_FRAME_HEADER + (kind === FEED_FRAME.end ? 1 : 0);
  const end = bytes.length - MAC_LENGTH;
  const sequence = end < start ? undefined : readU64(bytes, 18);
  if (sequence === undefined || sequence === 0) return undefined;
  const session = bytes.subarray(2, 2 + SESSION_ID_LENGTH);
  const payload = bytes.subarray(start, end);
  const frame = { session, sequence, payload, signedPart: bytes.subarray(0, end), mac: bytes.subarray(end) };
  if (kind === FEED_FRAME.items) return { kind: "items", ...frame };
  const reason = FEED_END_REASONS[(bytes[SESSION_FRAME_HEADER] ?? 0) - 1];
  return reason === undefined ? undefined : { kind: "end", reason, ...frame };
}

/** Whether the frame was made by the holder of the session's key for exactly this subject. */
export function verifyFeedFrame(
  port: Port,
  input: { frame: Pick<FeedFrame, "kind" | "signedPart" | "mac">; subject: string; key: MacKey },
): boolean {
  const { frame, subject, key } = input;
  const label = frame.kind === "items" ? FEED_ITEMS_LABEL : FEED_END_LABEL;
  return checkMac(port, frame, { label, subject, reply: "", key });
}
