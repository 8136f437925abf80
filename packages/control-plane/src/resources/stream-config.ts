import { DiscardPolicy, type StreamConfig } from "@nats-io/jetstream";
import {
  EVENT_STREAM,
  kvPrefix,
  kvWatchPrefix,
  storeChunkPrefix,
  storeMetaPrefix,
  storeWatchPrefix,
} from "@trellis/protocol";
import { streamOf, type WantedResource } from "./wanted.ts";

export type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, "name">;

const nanos = 1_000_000;
const dayMs = 86_400_000;
/** How long events can be replayed and read, ms. */
export const eventKeepMs = 7 * dayMs;
/** How long dead letters are kept, ms. */
export const deadLetterKeepMs = 30 * dayMs;
/** A second publish of the same event within it is stored once; the broker holds the ids of this span in memory. */
const duplicateWindowMs = 120_000;
/** What a stored message may hold beside its value: headers, and the stamp of its representation. */
const valueMargin = 1_024;

/** The one stream that all publishers share: no roll-ups, no schedules, no deleting, and only signed things in it. */
export const eventStream: WantedStream = {
  name: EVENT_STREAM,
  subjects: ["events.v1.>"],
  max_age: eventKeepMs * nanos,
  duplicate_window: duplicateWindowMs * nanos,
  allow_direct: true,
  deny_delete: true,
  deny_purge: true,
};

/** The stream behind a bucket, a store, or a deployment's dead letters. */
export function streamConfig(wanted: Exclude<WantedResource, { kind: "consumer" | "jobs" }>): WantedStream {
  const name = streamOf(wanted);
  switch (wanted.kind) {
    case "kv":
      return { ...kvConfig(wanted), name };
    case "store":
      return { ...storeConfig(wanted), name };
    case "dead-letters":
      return {
        name,
        subjects: [`dlq.v1.${name.slice("DLQ_".length)}.>`],
        max_age: deadLetterKeepMs * nanos,
        max_msgs_per_subject: 1,
        allow_direct: true,
      };
  }
}

function kvConfig({ name, spec }: Extract<WantedResource, { kind: "kv" }>): Partial<StreamConfig> {
  return {
    subjects: [`${kvPrefix(name)}.>`],
    max_msgs_per_subject: spec.history,
    ...(spec.ttlMs === null ? {} : { max_age: spec.ttlMs * nanos }),
    ...(spec.maxValueBytes === null ? {} : { max_msg_size: spec.maxValueBytes + valueMargin }),
    allow_direct: true,
    allow_msg_ttl: true,
    deny_delete: true,
    discard: DiscardPolicy.New,
    republish: { src: `${kvPrefix(name)}.>`, dest: `${kvWatchPrefix(name)}.>` },
  };
}

function storeConfig({ name, spec }: Extract<WantedResource, { kind: "store" }>): Partial<StreamConfig> {
  return {
    subjects: [`${storeChunkPrefix(name)}.>`, `${storeMetaPrefix(name)}.>`],
    ...(spec.ttlMs === null ? {} : { max_age: spec.ttlMs * nanos }),
    ...(spec.maxTotalBytes === null ? {} : { max_bytes: spec.maxTotalBytes }),
    allow_direct: true,
    allow_msg_ttl: true,
    allow_rollup_hdrs: true,
    discard: DiscardPolicy.New,
    republish: { src: `${storeMetaPrefix(name)}.>`, dest: `${storeWatchPrefix(name)}.>` },
  };
}
