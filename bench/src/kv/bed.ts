import { jetstream } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { kv } from "@trellis/contract";
import { KvBucket, nodePort, PlainLink, silentLogger } from "@trellis/runtime/node";
import { startNats, type TestNats } from "@trellis/testing";
import { Type } from "typebox";

export const Item = Type.Object({ id: Type.Integer(), text: Type.String() });

/** One server, two buckets of the same kind: one of ours, one of `@nats-io/kv`, each over its own connection. */
export interface KvBed extends AsyncDisposable {
  readonly nats: TestNats;
  readonly ours: KvBucket;
  readonly theirs: KV;
}

export async function makeKvBed(): Promise<KvBed> {
  const nats = await startNats();
  const [mine, other] = await Promise.all([dial(nats), dial(nats)]);
  const theirs = await new Kvm(jetstream(other)).create("theirs", { history: 1, allow_direct: true });
  await makeBucket(other, "ours");
  const link = new PlainLink(mine, { port: nodePort, log: silentLogger, connection: "bench" });
  const ours = new KvBucket({
    link,
    requests: link.requests,
    binding: { bucket: "ours", history: 1, ttlMs: null, maxValueBytes: null, watch: "kvw.v1.ours" },
    resource: kv({ value: Item }),
    timeoutMs: 10_000,
  });
  return {
    nats,
    ours,
    theirs,
    async [Symbol.asyncDispose]() {
      await link.close();
      await other.close();
      await nats.stop();
    },
  };
}

function dial(nats: TestNats): Promise<NatsConnection> {
  return connect({ servers: nats.url });
}

/** As the control plane makes it, republish included. */
async function makeBucket(nats: NatsConnection, bucket: string): Promise<void> {
  const answer = await nats.request(
    `$JS.API.STREAM.CREATE.KV_${bucket}`,
    JSON.stringify({
      name: `KV_${bucket}`,
      subjects: [`$KV.${bucket}.>`],
      retention: "limits",
      storage: "file",
      num_replicas: 1,
      max_msgs_per_subject: 1,
      discard: "new",
      allow_direct: true,
      deny_delete: true,
      allow_msg_ttl: true,
      republish: { src: `$KV.${bucket}.>`, dest: `kvw.v1.${bucket}.>` },
    }),
  );
  const { error } = answer.json<{ error?: { description: string } }>();
  if (error !== undefined) throw new Error(error.description);
}
