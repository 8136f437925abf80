import type { ConsumerResource } from "@trellis/contract";
import type { ConsumerBinding } from "@trellis/protocol";

/** A durable consumer: where the platform keeps it, and how the contract wants its events handled. */
export interface BoundConsumer
  extends ConsumerBinding,
    Pick<ConsumerResource, "retry" | "concurrency" | "ordering"> {}

/** Joins what the platform says of a consumer with what the contract says of it. */
export function boundConsumer(binding: ConsumerBinding, declared: ConsumerResource): BoundConsumer {
  const { retry, concurrency, ordering } = declared;
  return { ...binding, retry, concurrency, ordering };
}
