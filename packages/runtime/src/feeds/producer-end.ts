import type { UnexpectedError } from "@trellis/protocol";
import type { Callable } from "../rpc/callable.ts";
import { encodeReturned, encodeThrown } from "../rpc/encode-answer.ts";
import type { FeedEnding } from "./feed-writer.ts";

/** How a producer ended. */
export interface ProducerEnd extends FeedEnding {
  /** What must be logged here; the consumer learns only its id. */
  readonly bug: UnexpectedError | undefined;
}

/** A return completes the feed, unless what is returned is an error; a throw fails it. Never throws. */
export function producerEnd(
  opening: Callable,
  outcome: { readonly returned: unknown } | { readonly thrown: unknown },
): ProducerEnd {
  // What opens a feed has an output; its producer has none.
  const action = { ...opening, output: undefined };
  const { answer, bug } =
    "thrown" in outcome ? encodeThrown(action, outcome.thrown) : encodeReturned(action, outcome.returned);
  return answer.status === 0
    ? { reason: "completed", payload: "", bug }
    : { reason: "failed", payload: answer.payload, bug };
}
