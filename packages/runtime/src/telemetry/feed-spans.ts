import type { TrellisError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import type { HandledRequest } from "../rpc/call-context.ts";
import type { CallRequest } from "../rpc/rpc-client.ts";
import { startClientSpan, startServerSpan } from "./rpc-spans.ts";

/** Wraps the opening of a feed in `feed.client.<Name>`; the feed itself may go on for ever and has no span. */
export function withFeedClientSpan(
  request: CallRequest,
  open: (request: CallRequest) => AsyncResult<unknown, TrellisError>,
): AsyncResult<unknown, TrellisError> {
  return startClientSpan("feed.client", request, open);
}

/**
 * Begins the producer inside `feed.server.<Name>`, which ends with its first turn. What the producer does later still
 * belongs to that trace.
 */
export function withFeedServerSpan(
  session: HandledRequest & { traceBytes: Uint8Array | undefined },
  feed: { readonly name: string; readonly api: string },
  produce: () => unknown,
): unknown {
  return startServerSpan(session, feed, produce);
}
