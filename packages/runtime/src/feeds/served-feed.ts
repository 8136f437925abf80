import type { FeedAction } from "@trellis/contract";
import type { Callable } from "../rpc/callable.ts";
import type { ProducerSession } from "./producer-session.ts";

/** Runs the producer of a session; the layer above gives it client, context and the user's middleware. */
export type Produce = (session: ProducerSession, input: unknown) => unknown;

/** A feed that this process provides. */
export interface ServedFeed {
  readonly feed: FeedAction;
  /** The call that opens it. */
  readonly opening: Callable;
  readonly subject: string;
  readonly produce: Produce;
}
