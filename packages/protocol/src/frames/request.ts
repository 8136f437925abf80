import { allocate } from "../bytes/allocate.ts";
import { readU16, readU32, writeU16, writeU32 } from "../bytes/integers.ts";
import type { MacKey, Port } from "../port/port.ts";
import {
  checkMac,
  type DecodedHeader,
  type FrameHeader,
  frameFlags,
  HEADER_LENGTH,
  MAC_LENGTH,
  MAX_FRAME_CALLS,
  REQUEST_ID_LENGTH,
  readHeader,
  writeHeader,
  writeMac,
} from "./header.ts";

/** The domain label of a request frame's MAC. */
export const REQUEST_LABEL = "trellis.rpc.request.v1";

const REQUEST_FLAGS = 0;
const WITH_TRACE = 1;
const WITH_TRACESTATE = 2;
const WITH_ORIGIN = 4;
const ALL_FLAGS = WITH_TRACE | WITH_TRACESTATE | WITH_ORIGIN;
/** trace id 16, span id 8, flags 1 */
export const TRACE_LENGTH = 25;
/** call flags, request id, remaining time, payload length */
const CALL_FIXED = 1 + REQUEST_ID_LENGTH + 4 + 4;
const MAX_TRACESTATE = 512;
const MAX_REMAINING = 0xffff_ffff;

/** One call of a request frame, as the caller gives it. */
export interface CallItem {
  /** 16 bytes, unique for the caller. */
  readonly requestId: Uint8Array;
  /** Milliseconds until the deadline, from now: clocks need not agree. Clamped to 0 to 2^32 - 1. */
  readonly remainingMs: number;
  /** Trace id (16), span id (8) and flags (1) of W3C trace context. */
  readonly trace?: Uint8Array | undefined;
  /** W3C tracestate; left out when there is no `trace`, or when it is not printable ASCII of at most 512 characters. */
  readonly tracestate?: string | undefined;
  /** The request id (16) of the call at the beginning of the chain, when this one was made inside a handler. */
  readonly origin?: Uint8Array | undefined;
  /** JSON text. */
  readonly payload: string;
}

/** One call of a decoded request frame; byte fields are views of the frame. */
export interface DecodedCall {
  readonly requestId: Uint8Array;
  readonly remainingMs: number;
  readonly trace: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly origin: Uint8Array | undefined;
  /** JSON text in UTF-8, unchecked. */
  readonly payload: Uint8Array;
}

export interface RequestFrame extends DecodedHeader {
  readonly calls: readonly DecodedCall[];
  /** Everything that the MAC covers: a view. */
  readonly signedPart: Uint8Array;
  readonly mac: Uint8Array;
}

export interface RequestFrameInput {
  readonly header: FrameHeader;
  /** 1 to 64 calls. */
  readonly calls: readonly CallItem[];
  readonly subject: string;
  readonly reply: string;
  readonly key: MacKey;
}

/** How many bytes a call adds to a request frame; `payloadLength` is that of its JSON in UTF-8. */
export function callLength(call: CallItem, payloadLength: number): number {
  const fixed = CALL_FIXED + (call.origin === undefined ? 0 : REQUEST_ID_LENGTH) + payloadLength;
  if (call.trace === undefined) return fixed;
  const state = carriedTracestate(call);
  return fixed + TRACE_LENGTH + (state === undefined ? 0 : 2 + state.length);
}

/** How many bytes a request frame has beside its calls. */
export const REQUEST_OVERHEAD: number = HEADER_LENGTH + MAC_LENGTH;

/** Encodes and authenticates a request frame in one allocation. Throws a `RangeError` on a wrong count or id. */
export function encodeRequestFrame(port: Port, input: RequestFrameInput): Uint8Array {
  const { calls, header } = input;
  if (calls.length < 1 || calls.length > MAX_FRAME_CALLS)
    throw new RangeError("A frame holds 1 to 64 calls.");
  let length = REQUEST_OVERHEAD;
  for (const call of calls) length += callLength(call, port.utf8.length(call.payload));
  const bytes = allocate(length);
  writeHeader(bytes, REQUEST_FLAGS, header);
  let at = HEADER_LENGTH;
  for (const call of calls) at = writeCall(port, bytes, { call, at });
  writeMac(port, bytes, { label: REQUEST_LABEL, subject: input.subject, reply: input.reply, key: input.key });
  return bytes;
}

function writeCall(port: Port, into: Uint8Array, place: { call: CallItem; at: number }): number {
  const { call } = place;
  let at = place.at;
  if (call.requestId.length !== REQUEST_ID_LENGTH) throw new RangeError("A request id is 16 bytes.");
  const state = carriedTracestate(call);
  into[at] =
    (call.trace === undefined ? 0 : WITH_TRACE) |
    (state === undefined ? 0 : WITH_TRACESTATE) |
    (call.origin === undefined ? 0 : WITH_ORIGIN);
  into.set(call.requestId, at + 1);
  writeU32(into, at + 17, Math.min(Math.max(call.remainingMs, 0), MAX_REMAINING));
  at += 21;
  if (call.trace !== undefined) {
    if (call.trace.length !== TRACE_LENGTH) throw new RangeError("A trace context is 25 bytes.");
    into.set(call.trace, at);
    at += TRACE_LENGTH;
  }
  if (state !== undefined) {
    writeU16(into, at, state.length);
    at += 2 + port.utf8.write(into, state, at + 2);
  }
  if (call.origin !== undefined) {
    if (call.origin.length !== REQUEST_ID_LENGTH) throw new RangeError("A request id is 16 bytes.");
    into.set(call.origin, at);
    at += REQUEST_ID_LENGTH;
  }
  const written = port.utf8.write(into, call.payload, at + 4);
  writeU32(into, at, written);
  return at + 4 + written;
}

/** Tracing never makes a call fail: a state that the frame cannot carry is left out. */
function carriedTracestate(call: CallItem): string | undefined {
  const { trace, tracestate } = call;
  if (trace === undefined || tracestate === undefined || tracestate.length === 0) return undefined;
  return tracestate.length <= MAX_TRACESTATE && /^[\x20-\x7e]+$/.test(tracestate) ? tracestate : undefined;
}

/**
 * Reads only the header, so that the caller can be authenticated before its calls are looked at.
 * `undefined` for anything that is not a request frame.
 */
export function readRequestHeader(bytes: Uint8Array): DecodedHeader | undefined {
  return frameFlags(bytes) === REQUEST_FLAGS ? readHeader(bytes) : undefined;
}

/** Decodes a request frame without copying; `undefined` for any bytes that are not exactly one. */
export function decodeRequestFrame(port: Port, bytes: Uint8Array): RequestFrame | undefined {
  const header = readRequestHeader(bytes);
  if (header === undefined) return undefined;
  const end = bytes.length - MAC_LENGTH;
  const calls: DecodedCall[] = [];
  let at = HEADER_LENGTH;
  while (at < end) {
    if (calls.length === MAX_FRAME_CALLS) return undefined;
    const read = readCall(port, bytes, { at, end });
    if (read === undefined) return undefined;
    calls.push(read.call);
    at = read.next;
  }
  if (calls.length === 0) return undefined;
  return {
    epoch: header.epoch,
    digest: header.digest,
    digestText: header.digestText,
    counter: header.counter,
    issuedAt: header.issuedAt,
    calls,
    signedPart: bytes.subarray(0, end),
    mac: bytes.subarray(end),
  };
}

function readCall(
  port: Port,
  bytes: Uint8Array,
  range: { at: number; end: number },
): { call: DecodedCall; next: number } | undefined {
  const { at, end } = range;
  if (end - at < CALL_FIXED) return undefined;
  const flags = bytes[at] ?? 0;
  if (flags > ALL_FLAGS || (flags & (WITH_TRACE | WITH_TRACESTATE)) === WITH_TRACESTATE) return undefined;
  const requestId = bytes.subarray(at + 1, at + 17);
  const remainingMs = readU32(bytes, at + 17);
  const traced = (flags & WITH_TRACE) === 0 ? undefined : readTrace(port, bytes, { flags, at: at + 21, end });
  if ((flags & WITH_TRACE) !== 0 && traced === undefined) return undefined;
  const originAt = traced === undefined ? at + 21 : traced.next;
  const lengthAt = (flags & WITH_ORIGIN) === 0 ? originAt : originAt + REQUEST_ID_LENGTH;
  if (end - lengthAt < 4) return undefined;
  const next = lengthAt + 4 + readU32(bytes, lengthAt);
  if (next > end) return undefined;
  const payload = bytes.subarray(lengthAt + 4, next);
  const origin = lengthAt === originAt ? undefined : bytes.subarray(originAt, lengthAt);
  // One shape for every call, so that what reads them stays fast.
  const call = {
    requestId,
    remainingMs,
    trace: traced?.trace,
    tracestate: traced?.tracestate,
    origin,
    payload,
  };
  return { call, next };
}

function readTrace(
  port: Port,
  bytes: Uint8Array,
  place: { flags: number; at: number; end: number },
): { trace: Uint8Array; tracestate?: string; next: number } | undefined {
  const { flags, at, end } = place;
  const stateAt = at + TRACE_LENGTH;
  if (stateAt > end) return undefined;
  const trace = bytes.subarray(at, stateAt);
  if ((flags & WITH_TRACESTATE) === 0) return { trace, next: stateAt };
  if (end - stateAt < 2) return undefined;
  const length = readU16(bytes, stateAt);
  const next = stateAt + 2 + length;
  if (length === 0 || length > MAX_TRACESTATE || next > end) return undefined;
  for (let index = stateAt + 2; index < next; index += 1) {
    const byte = bytes[index] ?? 0;
    if (byte < 0x20 || byte > 0x7e) return undefined;
  }
  return { trace, tracestate: port.utf8.read(bytes, stateAt + 2, next), next };
}

/** Whether the frame was made by the holder of the key for exactly this subject and reply subject. */
export function verifyRequestFrame(
  port: Port,
  input: { frame: Pick<RequestFrame, "signedPart" | "mac">; subject: string; reply: string; key: MacKey },
): boolean {
  const { frame, subject, reply, key } = input;
  return checkMac(port, frame, { label: REQUEST_LABEL, subject, reply, key });
}
