import type { RetryPolicy } from "@trellis/contract";

/** A declared consumer as the platform provisioned it. */
export interface ConsumerBinding {
  readonly stream: string;
  /** Durable name. */
  readonly consumer: string;
  readonly ackWaitMs: number;
  readonly retry: RetryPolicy;
  /** Handlers that run at a time, per replica. */
  readonly concurrency: number;
  readonly ordering: "none" | "per-key";
  /** Where its dead letters go: a subject's beginning. */
  readonly deadLetters: { readonly subject: string };
}
