import { jetstream } from "@nats-io/jetstream";
import { Objm, setSha256Backend, type ObjectStore as TheirStore } from "@nats-io/obj";
import { connect } from "@nats-io/transport-node";
import { nodePort, PlainLink, StreamObjectStore, silentLogger } from "@trellis/runtime/node";
import { startNats } from "@trellis/testing";

/** One server and one store, of which both read and write: the layout is the same. */
export interface StoreBed extends AsyncDisposable {
  readonly ours: StreamObjectStore;
  readonly theirs: TheirStore;
}

export async function makeStoreBed(): Promise<StoreBed> {
  setSha256Backend("native");
  const nats = await startNats();
  const [mine, other] = await Promise.all([connect({ servers: nats.url }), connect({ servers: nats.url })]);
  const theirs = await new Objm(jetstream(other)).create("bench");
  const link = new PlainLink(mine, { port: nodePort, log: silentLogger, connection: "bench" });
  const ours = new StreamObjectStore({
    link,
    requests: link.requests,
    binding: {
      name: "bench",
      ttlMs: null,
      maxObjectBytes: null,
      maxTotalBytes: null,
      watch: "objw.v1.bench",
    },
    timeoutMs: 10_000,
  });
  return {
    ours,
    theirs,
    async [Symbol.asyncDispose]() {
      await link.close();
      await other.close();
      await nats.stop();
    },
  };
}
