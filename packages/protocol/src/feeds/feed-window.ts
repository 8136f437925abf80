/** What may be on its way to a consumer that has not handed it to the application yet. */
export const FEED_WINDOW = { frames: 64, bytes: 1024 * 1024 } as const;

/** When a silent or stalled session is asked and given up, ms. */
export const FEED_TIMING = {
  /** An opened session whose first challenge is not answered by then never starts. */
  proofMs: 10_000,
  /** A provider asks after so long without a sign of the consumer, and asks again. */
  challengeMs: 10_000,
  /** Both asks unanswered: the consumer is gone. */
  consumerLostMs: 28_000,
  /** A consumer asks by itself when the provider did not. */
  consumerAsksMs: 15_000,
  providerLostMs: 25_000,
  /** A full window of which the application takes no item for so long ends the session. */
  stallMs: 30_000,
  /** A gap is asked for once in this time. */
  resumeMs: 1_000,
} as const;
