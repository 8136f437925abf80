import type { Port } from "../port/port.ts";
import type { Authorization } from "../statements/authorization.ts";
import { type Grants, isGranted } from "../statements/grants.ts";
import type { EventStamp } from "./event-headers.ts";
import { eventLeaf, eventMessageId } from "./event-leaf.ts";
import type { EventAddress } from "./event-params.ts";
import { merkleRoot } from "./merkle.ts";

/** How far the publisher's clock and the stream's may be apart, ms: both then speak of the same publish. */
export const EVENT_CLOCK_LEEWAY_MS = 120_000;

/** Why an event is not handled. */
export const EVENT_REFUSALS = [
  /** Somebody published without signing. */
  "unsigned",
  /** Headers or subject are not those of an event. */
  "malformed",
  /** No authorization of that digest is known. */
  "unknown_authorization",
  /** Event, path or signature were changed, or made by somebody else. */
  "signature_invalid",
  /** The id that removes duplicates is not this event's: it could be stored twice. */
  "message_id_invalid",
  /** The publisher may not publish this event. */
  "not_granted",
  /** Signed long before or after it was stored: an old event, published again. */
  "untimely",
  "not_yet_valid",
  "expired",
  "revoked",
] as const;

export type EventRefusal = (typeof EVENT_REFUSALS)[number];

/** A publisher as the platform signed it. */
export interface EventPublisher {
  readonly authorization: Authorization;
  readonly grants: Grants;
}

/** A stored event, read but not trusted. */
export interface StoredEvent {
  readonly subject: string;
  readonly address: EventAddress;
  readonly stamp: EventStamp;
  /** Digest of its content, as one of the deployment that signed it. */
  readonly content: string;
  /** When the stream stored it, ms of the broker's clock. */
  readonly storedAt: number;
}

/** The root that the publisher must have signed; `undefined` when the path leads nowhere. */
export function eventRoot(
  port: Port,
  { stamp, content }: Pick<StoredEvent, "stamp" | "content">,
  leaf: string = eventLeaf(port, content, stamp),
): string | undefined {
  return merkleRoot(port, leaf, stamp.proof);
}

/**
 * Whether the publisher was allowed to publish this when the stream stored it; whether it really did is the
 * signature's answer. `revokedAt`: the earliest known instant at which something that the authorization rests on was
 * revoked after its beginning.
 */
export function refuseEvent(
  event: StoredEvent,
  publisher: EventPublisher & { readonly revokedAt: number | undefined },
): EventRefusal | undefined {
  const { authorization, grants, revokedAt } = publisher;
  const { address, stamp, storedAt, content } = event;
  const { deployment } = authorization;
  if (stamp.messageId !== eventMessageId(content)) return "message_id_invalid";
  const question = { surface: "publishes", api: address.api, deployment, action: address.action } as const;
  if (!isGranted(grants, question)) return "not_granted";
  if (Math.abs(storedAt - stamp.proof.signedAt) > EVENT_CLOCK_LEEWAY_MS) return "untimely";
  // The broker's clock against the platform's: the same leeway, since a socket may outlive its authorization by it.
  if (storedAt + EVENT_CLOCK_LEEWAY_MS < authorization.notBefore) return "not_yet_valid";
  if (storedAt - EVENT_CLOCK_LEEWAY_MS >= authorization.expiresAt) return "expired";
  return revokedAt !== undefined && revokedAt <= storedAt ? "revoked" : undefined;
}
