import { toBase64Url } from "../bytes/base64url.ts";
import { textTranscript } from "../bytes/transcript.ts";
import type { Port } from "../port/port.ts";
import { merkleLeafOf } from "./merkle.ts";

export const EVENT_LABEL = "trellis.event.v1";
export const EVENT_ID_LABEL = "trellis.event-id.v1";

/** Everything about one event that its publisher signs. */
export interface EventFacts {
  readonly api: string;
  readonly action: string;
  /** How many parameters the subject has: a shorter name with more of them is another event. */
  readonly paramCount: number;
  readonly subject: string;
  readonly id: string;
  /** When it was prepared, ms. */
  readonly time: number;
  /** 32 hex characters, or empty: the request in whose handler it was prepared. */
  readonly requestId: string;
  /** W3C trace context, or empty. */
  readonly traceparent: string;
  readonly tracestate: string;
}

/** The hash that stands for an event in its publisher's tree. */
export function eventLeaf(port: Port, facts: EventFacts, payloadDigest: Uint8Array): Uint8Array {
  const { api, action, paramCount, subject, id, time, requestId, traceparent, tracestate } = facts;
  const texts = [
    api,
    action,
    String(paramCount),
    subject,
    id,
    String(time),
    requestId,
    traceparent,
    tracestate,
  ];
  return merkleLeafOf(port, textTranscript(EVENT_LABEL, texts, { last: payloadDigest, head: 1 }));
}

/**
 * The id that the stream removes duplicates by: 22 characters. Scoped by publisher, subject and payload: an id that
 * an application chose itself may be used by another service, for another event or with other content, and all are
 * stored; the same event published again is stored once. Nobody who does not know the payload can take the id first.
 */
export function eventMessageId(
  port: Port,
  event: { deployment: string; subject: string; id: string },
  payloadDigest: Uint8Array,
): string {
  const { deployment, subject, id } = event;
  const digest = port.sha256(
    textTranscript(EVENT_ID_LABEL, [deployment, subject, id], { last: payloadDigest }),
  );
  return toBase64Url(digest.subarray(0, 16));
}
