import type { EventFacts } from "./event-leaf.ts";
import { type EventProof, readEventProof, readWhole } from "./event-proof.ts";

/** The headers of a stored event. */
export const EVENT_HEADERS = {
  id: "Trellis-Event-Id",
  time: "Trellis-Event-Time",
  requestId: "Trellis-Request-Id",
  proof: "Trellis-Event-Proof",
  traceparent: "traceparent",
  tracestate: "tracestate",
  /** The server's own: see `eventMessageId`. */
  messageId: "Nats-Msg-Id",
} as const;

/** What an application may choose as the id of an event: 1 to 128 visible ASCII characters. */
const ID = /^[\x21-\x7e]{1,128}$/;
const REQUEST_ID = /^[0-9a-f]{32}$/;
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

export function isEventId(text: string): boolean {
  return ID.test(text);
}

/** Whether the text may travel as `tracestate`; what may not is left out. */
export function isTraceState(text: string): boolean {
  return TRACESTATE.test(text) && text.trim() === text;
}

interface Stamp extends EventFacts {
  readonly id: string;
}

/** The headers of an event; what is empty is left out. `proof`: as `signEvents` writes it. */
export function writeEventHeaders(
  stamp: Stamp & { readonly messageId: string; readonly proof: string },
): Record<string, string> {
  const headers: Record<string, string> = {
    [EVENT_HEADERS.id]: stamp.id,
    [EVENT_HEADERS.time]: String(stamp.time),
    [EVENT_HEADERS.proof]: stamp.proof,
    [EVENT_HEADERS.messageId]: stamp.messageId,
  };
  if (stamp.requestId !== "") headers[EVENT_HEADERS.requestId] = stamp.requestId;
  if (stamp.traceparent !== "") headers[EVENT_HEADERS.traceparent] = stamp.traceparent;
  if (stamp.tracestate !== "") headers[EVENT_HEADERS.tracestate] = stamp.tracestate;
  return headers;
}

/** An event's headers, read. */
export interface EventStamp extends Stamp {
  readonly messageId: string;
  readonly proof: EventProof;
}

export type EventHeadersReading =
  | { readonly ok: true; readonly stamp: EventStamp }
  | { readonly ok: false; readonly reason: "unsigned" | "malformed" };

/** Reads the headers of a message by their exact names; an absent header is `""`. */
export function readEventHeaders(
  header: (name: string) => string,
  readProof: (text: string) => EventProof | undefined = readEventProof,
): EventHeadersReading {
  const proofText = header(EVENT_HEADERS.proof);
  if (proofText === "") return { ok: false, reason: "unsigned" };
  const proof = readProof(proofText);
  const time = readWhole(header(EVENT_HEADERS.time));
  const id = header(EVENT_HEADERS.id);
  const messageId = header(EVENT_HEADERS.messageId);
  const requestId = header(EVENT_HEADERS.requestId);
  const traceparent = header(EVENT_HEADERS.traceparent);
  const tracestate = header(EVENT_HEADERS.tracestate);
  const fits =
    isEventId(id) &&
    messageId !== "" &&
    (requestId === "" || REQUEST_ID.test(requestId)) &&
    (traceparent === "" || TRACEPARENT.test(traceparent)) &&
    (tracestate === "" || isTraceState(tracestate));
  if (proof === undefined || time === undefined || !fits) return { ok: false, reason: "malformed" };
  return { ok: true, stamp: { id, time, requestId, traceparent, tracestate, messageId, proof } };
}
