import { CallError, type CallErrorOptions, type Open, withDetails } from "./call-error.ts";

/**
 * Why a feed ended before its producer was done. `provider_lost`: the instance is gone; `delivery_gap`: items may be
 * missing, since the session ended while this process was cut off; `consumer_slow`: this side took too little for too
 * long; `stopped`: the instance is shutting down.
 */
export type FeedErrorReason = Open<
  "provider_lost" | "delivery_gap" | "consumer_slow" | "stopped" | "cancelled"
>;

const MESSAGES: Readonly<Record<string, string>> = {
  provider_lost: "The instance that produced the feed is gone",
  delivery_gap: "The feed was cut off; items may be missing",
  consumer_slow: "The feed was read too slowly",
  stopped: "The instance that produced the feed is stopping",
  cancelled: "The provider cancelled the feed",
};

/** A feed ended early, for a reason that neither its API declares nor a single call could have. Opening it again is safe. */
export class FeedError extends CallError {
  static readonly errorType = "FeedError";
  readonly type = "FeedError";
  readonly reason: FeedErrorReason;

  constructor(options: CallErrorOptions & { readonly reason: FeedErrorReason }) {
    const { reason } = options;
    super(
      options.message ?? MESSAGES[reason] ?? `The feed ended: ${reason}`,
      withDetails(options, { reason }),
    );
    this.reason = reason;
  }
}
