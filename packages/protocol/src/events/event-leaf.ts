import type { Port } from "../port/port.ts";

// What is hashed is text, its fields a line each: none but the last can hold a line break, since all of them are
// tokens, digits or visible ASCII, and are checked to be. Hashes stand as base64url throughout, as they do in the
// headers: each end pays for two of them an event, and neither encodes nor decodes one.

export const EVENT_LABEL = "trellis.event.v1";
export const EVENT_CONTENT_LABEL = "trellis.event-content.v1";

/** What makes an event the one that it is. */
export interface EventContent {
  /** Deployment of the publisher. */
  readonly deployment: string;
  /** Says API, name and parameters, each in one way only; see `readEventSubject`. */
  readonly subject: string;
  readonly id: string;
  /** JSON text. */
  readonly payload: string;
}

/** What a publisher says about an event apart from its content. */
export interface EventFacts {
  /** When it was prepared, ms. */
  readonly time: number;
  /** 32 hex characters, or empty: the request in whose handler it was prepared. */
  readonly requestId: string;
  /** W3C trace context, or empty. */
  readonly traceparent: string;
  readonly tracestate: string;
}

/** Digest of an event's content. */
export function eventContent(port: Port, { deployment, subject, id, payload }: EventContent): string {
  return port.sha256Text(`${EVENT_CONTENT_LABEL}\n${deployment}\n${subject}\n${id}\n${payload}`);
}

/**
 * The id that the stream removes duplicates by: 22 characters of the content's digest. An id that an application chose
 * itself may thus be used by another service, for another event or with other content, and all are stored; the same
 * event published again is stored once. Nobody who does not know the payload can take the id first.
 */
export function eventMessageId(content: string): string {
  return content.slice(0, 22);
}

/** The hash that stands for an event in its publisher's tree. */
export function eventLeaf(port: Port, content: string, facts: EventFacts): string {
  const { time, requestId, traceparent, tracestate } = facts;
  return port.sha256Text(`${EVENT_LABEL}\n${content}\n${time}\n${requestId}\n${traceparent}\n${tracestate}`);
}
