import { AckPolicy, type ConsumerConfig, type ConsumerUpdateConfig, DeliverPolicy } from "@nats-io/jetstream";
import type { ConsumerSpec } from "./wanted.ts";

const nanos = 1_000_000;
/** Deliveries that a consumer has out at a time, over all replicas: retries that wait do not hold up the rest. */
const maxAckPending = 5_000;
/** After this silence of the replica that has a per-key consumer, another takes it over, ms. */
const pinnedMs = 5_000;

/** A consumer as it is made. Delivery is unlimited: how often to try is the runtime's to count. */
export function consumerConfig(
  name: string,
  spec: ConsumerSpec,
  metadata: Record<string, string>,
): Partial<ConsumerConfig> {
  return {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    max_deliver: -1,
    ...changeableConfig(spec, metadata),
    ...beginning(spec.replay),
  };
}

/** One replica at a time has the events: the keys' order is then its own to keep. */
const pinned: Partial<ConsumerUpdateConfig> = {
  priority_groups: ["key"],
  priority_policy: "pinned_client",
  priority_timeout: pinnedMs * nanos,
};

/** What may change of one that exists. Where it began is decided once. */
export function changeableConfig(
  { filters, ackWaitMs, ordering }: ConsumerSpec,
  metadata: Record<string, string>,
): Partial<ConsumerUpdateConfig> {
  return {
    ack_wait: ackWaitMs * nanos,
    max_ack_pending: maxAckPending,
    filter_subjects: [...filters],
    metadata,
    ...(ordering === "none" ? {} : pinned),
  };
}

function beginning(replay: ConsumerSpec["replay"]): Partial<ConsumerConfig> {
  if (replay === "all") return { deliver_policy: DeliverPolicy.All };
  if (replay === "new") return { deliver_policy: DeliverPolicy.New };
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(replay.since).toISOString() };
}
