import { allocate } from "../bytes/allocate.ts";
import { readU16, writeU16 } from "../bytes/integers.ts";
import type { MacKey, Port } from "../port/port.ts";
import {
  checkMac,
  type DecodedHeader,
  type FrameHeader,
  frameFlags,
  HEADER_LENGTH,
  MAC_LENGTH,
  MAX_CONTROL_IDS,
  REQUEST_ID_LENGTH,
  readHeader,
  writeHeader,
  writeMac,
} from "./header.ts";

/** The domain label of a control frame's MAC; the key is that of requests. */
export const CONTROL_LABEL = "trellis.rpc.control.v1";

/** `cancel`: stop these calls. `ping`: say which of these calls you still run. */
export const CONTROL_KINDS = ["cancel", "ping"] as const;

export type ControlKind = (typeof CONTROL_KINDS)[number];

export interface ControlFrameInput {
  readonly kind: ControlKind;
  readonly header: FrameHeader;
  /** 1 to 1024 request ids of 16 bytes. */
  readonly requestIds: readonly Uint8Array[];
  readonly subject: string;
  /** The reply subject, or `""` when no answer is wanted. */
  readonly reply: string;
  readonly key: MacKey;
}

export interface ControlFrame extends DecodedHeader {
  readonly kind: ControlKind;
  /** Views of the frame. */
  readonly requestIds: readonly Uint8Array[];
  readonly signedPart: Uint8Array;
  readonly mac: Uint8Array;
}

/** Encodes and authenticates a control frame. Throws a `RangeError` on a wrong count or id. */
export function encodeControlFrame(port: Port, input: ControlFrameInput): Uint8Array {
  const { requestIds } = input;
  if (requestIds.length < 1 || requestIds.length > MAX_CONTROL_IDS) {
    throw new RangeError("A control frame names 1 to 1024 requests.");
  }
  const bytes = allocate(HEADER_LENGTH + 2 + requestIds.length * REQUEST_ID_LENGTH + MAC_LENGTH);
  writeHeader(bytes, CONTROL_KINDS.indexOf(input.kind) + 1, input.header);
  writeU16(bytes, HEADER_LENGTH, requestIds.length);
  let at = HEADER_LENGTH + 2;
  for (const requestId of requestIds) {
    if (requestId.length !== REQUEST_ID_LENGTH) throw new RangeError("A request id is 16 bytes.");
    bytes.set(requestId, at);
    at += REQUEST_ID_LENGTH;
  }
  writeMac(port, bytes, { label: CONTROL_LABEL, subject: input.subject, reply: input.reply, key: input.key });
  return bytes;
}

/** Reads only the header of a control frame; `undefined` for anything that is not one. */
export function readControlHeader(bytes: Uint8Array): (DecodedHeader & { kind: ControlKind }) | undefined {
  const kind = CONTROL_KINDS[(frameFlags(bytes) ?? 0) - 1];
  const header = kind === undefined ? undefined : readHeader(bytes);
  return kind === undefined || header === undefined ? undefined : { kind, ...header };
}

/** Decodes a control frame without copying; `undefined` for any bytes that are not exactly one. */
export function decodeControlFrame(_port: Port, bytes: Uint8Array): ControlFrame | undefined {
  const header = readControlHeader(bytes);
  if (header === undefined) return undefined;
  const end = bytes.length - MAC_LENGTH;
  const count = end - HEADER_LENGTH < 2 ? 0 : readU16(bytes, HEADER_LENGTH);
  const start = HEADER_LENGTH + 2;
  if (count < 1 || count > MAX_CONTROL_IDS || end - start !== count * REQUEST_ID_LENGTH) return undefined;
  const requestIds: Uint8Array[] = [];
  for (let at = start; at < end; at += REQUEST_ID_LENGTH) {
    requestIds.push(bytes.subarray(at, at + REQUEST_ID_LENGTH));
  }
  return { ...header, requestIds, signedPart: bytes.subarray(0, end), mac: bytes.subarray(end) };
}

/** Whether the frame was made by the holder of the key for exactly this subject and reply subject. */
export function verifyControlFrame(
  port: Port,
  input: { frame: Pick<ControlFrame, "signedPart" | "mac">; subject: string; reply: string; key: MacKey },
): boolean {
  const { frame, subject, reply, key } = input;
  return checkMac(port, frame, { label: CONTROL_LABEL, subject, reply, key });
}
