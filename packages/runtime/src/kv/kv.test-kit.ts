import type { InputOf, OutputOf } from "@trellis/contract";
import { kv as defineKv, type KvResource, type SchemaLike } from "@trellis/contract";
import { type KvBinding, kvPrefix, kvWatchPrefix } from "@trellis/protocol";
import type { Streams, TestLink } from "../jetstream/streams.test-kit.ts";
import type { Kv } from "./kv.ts";
import { KvBucket } from "./kv-bucket.ts";
import type { KvChange } from "./kv-entry.ts";

let made = 0;

/** A bucket of its own on the server, as the control plane would make it. */
export async function makeBucket<V extends SchemaLike>(
  streams: Streams,
  resource: KvResource<V>,
): Promise<{ binding: KvBinding; open: (link: TestLink) => Kv<InputOf<V>, OutputOf<V>>; subject: string }> {
  made += 1;
  const bucket = `b${process.pid}-${made}`;
  const { history, ttlMs, maxValueBytes } = resource;
  await streams.addBucket(bucket, {
    max_msgs_per_subject: history,
    ...(ttlMs !== undefined && { max_age: ttlMs * 1_000_000 }),
    ...(maxValueBytes !== undefined && { max_msg_size: maxValueBytes + 1_024 }),
  });
  const binding: KvBinding = {
    bucket,
    history,
    ttlMs: ttlMs ?? null,
    maxValueBytes: maxValueBytes ?? null,
    watch: kvWatchPrefix(bucket),
  };
  return {
    binding,
    subject: kvPrefix(bucket),
    open: (link) =>
      new KvBucket({ link, requests: link.requests, binding, resource, timeoutMs: 5_000 }) as Kv<
        InputOf<V>,
        OutputOf<V>
      >,
  };
}

export { defineKv };

/** What a watch gives up to and with `ready`. */
export async function initialOf<V>(iterator: AsyncIterator<KvChange<V>>): Promise<KvChange<V>[]> {
  const changes: KvChange<V>[] = [];
  for (;;) {
    const { value, done } = await iterator.next();
    if (done === true) throw new Error("the watch ended before it was ready");
    if (value.kind === "ready") return changes;
    changes.push(value);
  }
}
