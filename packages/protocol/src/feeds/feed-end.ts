/**
 * How a provider ends a session. `completed`: the producer is done; `failed`: an error envelope follows;
 * `consumer_slow`: the consumer took nothing for too long, or less than a producer that does not wait has given;
 * `stopped`: the provider is shutting down; `cancelled`: the provider was asked to.
 */
export const FEED_END_REASONS = ["completed", "failed", "consumer_slow", "stopped", "cancelled"] as const;

export type FeedEndReason = (typeof FEED_END_REASONS)[number];
