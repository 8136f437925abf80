import type { DecodedHeader, RefusalCode } from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";

/** Frames older or newer than this are refused, ms (the replay window covers the rest). */
const maxAgeMs = 60_000;
/** What clocks may differ by after correction, ms. */
const leewayMs = 5_000;
/** A provider that could not read revocations for this long takes no callers that it does not know yet. */
const maxBlindMs = 60_000;

export type Found =
  | { readonly kind: "session"; readonly session: CallerSession; readonly epoch: CallerEpoch }
  | { readonly kind: "unknown" }
  | { readonly kind: "refused"; readonly code: RefusalCode };

/** Finds the keys for a frame, from what is cached: who sent it and under which epoch. */
export function findCaller(link: Link, header: DecodedHeader, session: CallerSession | undefined): Found {
  const routeKey = link.session.routeKeys.get(header.epoch);
  if (routeKey === undefined) return { kind: "refused", code: "stale-epoch" };
  if (session === undefined) return { kind: "unknown" };
  const epoch = session.epoch(header.epoch, routeKey);
  return epoch === undefined
    ? { kind: "refused", code: "unknown-authorization" }
    : { kind: "session", session, epoch };
}

/** May callers that are not cached be looked up now? */
export function seesRevocations(link: Link): boolean {
  return link.notices.ready && link.notices.blindFor < maxBlindMs;
}

/** What is wrong with a frame whose MAC was right; `undefined` when nothing is. */
export function staleness(
  link: Link,
  header: DecodedHeader,
  found: { session: CallerSession; epoch: CallerEpoch },
): string | undefined {
  const now = link.clock.now();
  if (Math.abs(now - header.issuedAt) > maxAgeMs) return "outdated";
  if (!found.epoch.window.accept(header.counter)) return "replayed";
  const { authorization, revoked } = found.session;
  if (revoked) return "revoked";
  if (now > authorization.expiresAt + leewayMs || now < authorization.notBefore - leewayMs) return "expired";
  return undefined;
}

/** The connection that a reply subject names, or "" when it is none. Nothing but a claim until the MAC was checked. */
export function senderOf(reply: string): string {
  return /^_INBOX\.([A-Za-z0-9]+)\.r\.[A-Za-z0-9]+$/.exec(reply)?.[1] ?? "";
}
