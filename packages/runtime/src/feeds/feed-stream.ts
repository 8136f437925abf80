import type { CallErrors, FeedError, TrellisError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";

/** Every error of Trellis' own that a feed can end with. */
export type FeedErrors = CallErrors | FeedError;

/** Any error that a feed can end with. */
export type FeedFailure = TrellisError | FeedError;

export interface FeedOptions {
  /** Aborting it ends the feed at once, also at the provider; the loop throws a `CancelledError`. */
  readonly signal?: AbortSignal;
  /** Milliseconds that the opening may take; the feed itself has no end. Default: that of calls. */
  readonly timeout?: number;
}

/**
 * A feed as its consumer reads it: `for await (const item of feed)`. It is opened by the first `next`, read once, and
 * left by `break`, `return` or the signal, which frees the producer at once. When it ends early the loop throws what
 * `ended` holds, after the items that had arrived: an error that the feed declares, or one of Trellis' own.
 */
export interface FeedStream<Item, Errors>
  extends AsyncIterableIterator<Item, undefined, undefined>,
    AsyncDisposable {
  /** How the feed ended, typed: ok when it was completed or left. Never rejects. */
  readonly ended: AsyncResult<void, Errors | FeedErrors>;
  return(): Promise<IteratorResult<Item, undefined>>;
  [Symbol.asyncIterator](): this;
}

/** Opens one feed. */
export type FeedOpener<Input, Item, Errors> = [Input] extends [void]
  ? FeedOpenerWithoutInput<Item, Errors>
  : FeedOpenerWithInput<Input, Item, Errors>;

export interface FeedOpenerWithInput<Input, Item, Errors> {
  (input: Input, options?: FeedOptions): FeedStream<Item, Errors>;
}

export interface FeedOpenerWithoutInput<Item, Errors> {
  (input?: undefined, options?: FeedOptions): FeedStream<Item, Errors>;
}
