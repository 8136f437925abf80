import type { Result } from "@trellis/result";
import type { HandlerContext } from "../rpc/rpc-handler.ts";

/**
 * Gives one item to the consumer. The promise resolves when the next item may be given: a producer that awaits it is
 * as fast as its consumer. It rejects once the session is over, and for an item that does not fit the contract, which
 * ends the session. A producer that does not await it may be ahead by 4 MiB; then the session ends as
 * `consumer_slow`.
 */
export interface Emit<Item> {
  (item: Item): Promise<void>;
}

/** What a producer is given: one session of a feed. */
export interface FeedSession<Input, Item, Client> {
  readonly input: Input;
  /** `deadline` is never: a feed may stay open for ever. */
  readonly context: HandlerContext;
  readonly emit: Emit<Item>;
  /** Aborts as soon as the consumer has left or is gone, or the service stops. The same as `context.signal`. */
  readonly signal: AbortSignal;
  /** Calls made through it inherit request id, trace and the end of the session. */
  readonly client: Client;
}

type Eventual<T> = T | PromiseLike<T>;

/**
 * Produces one session of a feed. It is called once the way to the consumer is proven to work. When it returns, the
 * feed is completed; a declared error that it throws or returns is told to the consumer.
 */
export type FeedHandler<Input, Item, Errors, Client> = (
  session: FeedSession<Input, Item, Client>,
) => Eventual<void | Errors | Result<void, Errors>>;

/** Registers the producer of one feed; a second one for the same feed throws. */
export interface FeedHandle<Input, Item, Errors, Client> {
  (handler: FeedHandler<Input, Item, Errors, Client>): void;
}
