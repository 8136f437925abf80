import type { FeedAction } from "@trellis/contract";
import type { FeedEndReason, UnexpectedError } from "@trellis/protocol";
import { encodeReturned, encodeThrown } from "../rpc/encode-answer.ts";
import { feedOpenAction } from "./feed-open-action.ts";

/** How a producer ended, as the consumer is told. */
export interface ProducerEnd {
  readonly reason: FeedEndReason;
  /** JSON text of an error envelope, or empty. */
  readonly payload: string;
  /** What must be logged here; the consumer learns only its id. */
  readonly bug: UnexpectedError | undefined;
}

/** A return completes the feed, unless what is returned is an error; a throw fails it. Never throws. */
export function producerEnd(
  feed: FeedAction,
  outcome: { readonly returned: unknown } | { readonly thrown: unknown },
): ProducerEnd {
  const action = { ...feedOpenAction(feed), output: undefined };
  const { answer, bug } =
    "thrown" in outcome ? encodeThrown(action, outcome.thrown) : encodeReturned(action, outcome.returned);
  return answer.status === 0
    ? { reason: "completed", payload: "", bug }
    : { reason: "failed", payload: answer.payload, bug };
}
