import { allocate } from "../bytes/allocate.ts";
import { readU32, writeU32 } from "../bytes/integers.ts";
import type { MacKey, Port } from "../port/port.ts";
import {
  checkMac,
  FRAME_VERSION,
  frameFlags,
  MAC_LENGTH,
  MAX_FRAME_CALLS,
  REQUEST_ID_LENGTH,
  writeMac,
} from "./header.ts";

/** The domain label of a reply frame's MAC. */
export const REPLY_LABEL = "trellis.rpc.reply.v1";

const RESULTS_FLAGS = 0;
const REFUSAL_FLAGS = 1;
const REPLY_HEADER = 6;
/** request id, status, payload length */
const RESULT_FIXED = REQUEST_ID_LENGTH + 1 + 4;

/** How many bytes a reply frame has beside its results. */
export const REPLY_OVERHEAD: number = REPLY_HEADER + MAC_LENGTH;
/** How many bytes a result has beside its payload. */
export const RESULT_OVERHEAD: number = RESULT_FIXED;

/**
 * What a result's payload is. `ok`: the output; `error`: an error envelope; `receipt`: the call is still open and
 * the payload names the provider's connection. The status decides, never the payload's looks.
 */
export const RESULT_STATUS = { ok: 0, error: 1, receipt: 2 } as const;

export type ResultStatus = (typeof RESULT_STATUS)[keyof typeof RESULT_STATUS];

export interface ResultItem {
  /** The 16 bytes of the call's request id. */
  readonly requestId: Uint8Array;
  readonly status: ResultStatus;
  /** JSON text. */
  readonly payload: string;
}

/** One result of a decoded reply frame; byte fields are views of the frame. */
export interface DecodedResult {
  readonly requestId: Uint8Array;
  readonly status: ResultStatus;
  /** JSON text in UTF-8, unchecked. */
  readonly payload: Uint8Array;
}

export interface ReplyFrame {
  readonly kind: "results";
  readonly epoch: number;
  readonly results: readonly DecodedResult[];
  readonly signedPart: Uint8Array;
  readonly mac: Uint8Array;
}

/** Why a frame was turned away before anybody was authenticated. A hint to refresh and retry once, never more. */
export const REFUSAL_CODES = ["unknown-authorization", "stale-epoch", "malformed"] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** An unauthenticated answer: anybody may have sent it. */
export interface RefusalFrame {
  readonly kind: "refusal";
  readonly code: RefusalCode;
}

export interface ReplyFrameInput {
  readonly epoch: number;
  /** 1 to 64 results. */
  readonly results: readonly ResultItem[];
  /** The reply subject that the frame goes to. */
  readonly reply: string;
  readonly key: MacKey;
}

/** Encodes and authenticates a reply frame in one allocation. Throws a `RangeError` on a wrong count or id. */
export function encodeReplyFrame(port: Port, input: ReplyFrameInput): Uint8Array {
  const { results } = input;
  if (results.length < 1 || results.length > MAX_FRAME_CALLS)
    throw new RangeError("A frame holds 1 to 64 results.");
  let length = REPLY_OVERHEAD;
  for (const result of results) length += RESULT_FIXED + port.utf8.length(result.payload);
  const bytes = allocate(length);
  bytes[0] = FRAME_VERSION;
  bytes[1] = RESULTS_FLAGS;
  writeU32(bytes, 2, input.epoch);
  let at = REPLY_HEADER;
  for (const { requestId, status, payload } of results) {
    if (requestId.length !== REQUEST_ID_LENGTH) throw new RangeError("A request id is 16 bytes.");
    bytes.set(requestId, at);
    bytes[at + 16] = status;
    const written = port.utf8.write(bytes, payload, at + RESULT_FIXED);
    writeU32(bytes, at + 17, written);
    at += RESULT_FIXED + written;
  }
  writeMac(port, bytes, { label: REPLY_LABEL, subject: input.reply, reply: "", key: input.key });
  return bytes;
}

/** Encodes a refusal: three bytes, without a MAC. */
export function encodeRefusal(code: RefusalCode): Uint8Array {
  return Uint8Array.of(FRAME_VERSION, REFUSAL_FLAGS, REFUSAL_CODES.indexOf(code) + 1);
}

/** Decodes a reply frame or a refusal without copying; `undefined` for any bytes that are not exactly one. */
export function decodeReplyFrame(_port: Port, bytes: Uint8Array): ReplyFrame | RefusalFrame | undefined {
  const flags = frameFlags(bytes);
  if (flags === REFUSAL_FLAGS) return decodeRefusal(bytes);
  if (flags !== RESULTS_FLAGS || bytes.length < REPLY_OVERHEAD + RESULT_FIXED) return undefined;
  const end = bytes.length - MAC_LENGTH;
  const results: DecodedResult[] = [];
  let at = REPLY_HEADER;
  while (at < end) {
    if (end - at < RESULT_FIXED || results.length === MAX_FRAME_CALLS) return undefined;
    const status = bytes[at + 16];
    if (status !== 0 && status !== 1 && status !== 2) return undefined;
    const next = at + RESULT_FIXED + readU32(bytes, at + 17);
    if (next > end) return undefined;
    results.push({
      requestId: bytes.subarray(at, at + 16),
      status,
      payload: bytes.subarray(at + RESULT_FIXED, next),
    });
    at = next;
  }
  return {
    kind: "results",
    epoch: readU32(bytes, 2),
    results,
    signedPart: bytes.subarray(0, end),
    mac: bytes.subarray(end),
  };
}

function decodeRefusal(bytes: Uint8Array): RefusalFrame | undefined {
  const code = REFUSAL_CODES[(bytes[2] ?? 0) - 1];
  return bytes.length === 3 && code !== undefined ? { kind: "refusal", code } : undefined;
}

/** Whether the frame was made by the holder of the key for exactly this reply subject. */
export function verifyReplyFrame(
  port: Port,
  input: { frame: Pick<ReplyFrame, "signedPart" | "mac">; reply: string; key: MacKey },
): boolean {
  const { frame, reply, key } = input;
  return checkMac(port, frame, { label: REPLY_LABEL, subject: reply, reply: "", key });
}
