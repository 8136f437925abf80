import { type JetStreamManager, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { kvPrefix, kvStreamName, kvWatchPrefix, storeStreamName, storeWatchPrefix } from "@trellis/protocol";
import { eventually, startNats, type TestNats } from "@trellis/testing";
import { within } from "../lifecycle/within.ts";
import { silentLogger } from "../logging/logger.ts";
import { nodePort } from "../platform/node/port.ts";
import { PlainLink } from "./plain-link.ts";

/** A link without a control plane: the broker alone, everything allowed. */
export type TestLink = PlainLink;

let connections = 0;

export async function openTestLink(servers: string, options: { user?: string } = {}): Promise<TestLink> {
  const nats = await connect({
    servers,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    reconnectJitter: 20,
    ...(options.user === undefined ? {} : { user: options.user, pass: options.user }),
  });
  connections += 1;
  const connection = `test-${process.pid}-${connections}`;
  return new PlainLink(nats, { port: nodePort, log: silentLogger, connection });
}

/** A server, an administrator of its streams, and links to it. */
export interface Streams extends AsyncDisposable {
  readonly nats: TestNats;
  readonly admin: NatsConnection;
  readonly manager: JetStreamManager;
  /** `user`: name and password of a user of the configuration. */
  link(servers?: string, user?: string): Promise<TestLink>;
  /** A bucket as the control plane makes it. */
  addBucket(bucket: string, changes?: Partial<StreamConfig>): Promise<void>;
  /** Takes the server down and up again; resolves when the administrator is connected too. */
  restart(options?: { readonly kill?: boolean }): Promise<void>;
  /** Takes the republish of a bucket away, or gives it back. */
  silence(bucket: string, silent: boolean): Promise<void>;
  addStore(name: string, changes?: Partial<StreamConfig>): Promise<void>;
}

export async function startStreams(config?: string): Promise<Streams> {
  const nats = await startNats(config === undefined ? {} : { config });
  const admin = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const manager = await jetstreamManager(admin, { checkAPI: false });
  const links: TestLink[] = [];
  return {
    nats,
    admin,
    manager,
    async link(servers = nats.url, user) {
      const link = await openTestLink(servers, user === undefined ? {} : { user });
      links.push(link);
      return link;
    },
    async addBucket(bucket, changes = {}) {
      await manager.streams.add({ ...bucketConfig(bucket), ...changes });
    },
    async restart(options) {
      await nats.restart(options);
      await eventually(async () => {
        await within(admin.flush(), 500);
        return (await manager.getAccountInfo()).streams >= 0;
      });
    },
    async silence(bucket, silent) {
      const { republish: _, ...config } = bucketConfig(bucket);
      const wanted = silent ? config : bucketConfig(bucket);
      // A whole update: what is left out is gone.
      const answer = await admin.request(
        `$JS.API.STREAM.UPDATE.${kvStreamName(bucket)}`,
        JSON.stringify({ ...wanted, retention: "limits", storage: "file", num_replicas: 1 }),
      );
      const { error } = answer.json<{ error?: { description: string } }>();
      if (error !== undefined) throw new Error(error.description);
    },
    async addStore(name, changes = {}) {
      await manager.streams.add({ ...storeConfig(name), ...changes });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(links.map((link) => link.close()));
      await admin.close();
      await nats.stop();
    },
  };
}

function bucketConfig(bucket: string) {
  return {
    name: kvStreamName(bucket),
    subjects: [`${kvPrefix(bucket)}.>`],
    max_msgs_per_subject: 1,
    allow_direct: true,
    allow_msg_ttl: true,
    deny_delete: true,
    discard: "new" as const,
    republish: { src: `${kvPrefix(bucket)}.>`, dest: `${kvWatchPrefix(bucket)}.>` },
  };
}

function storeConfig(name: string) {
  return {
    name: storeStreamName(name),
    subjects: [`$O.${name}.C.>`, `$O.${name}.M.>`],
    allow_direct: true,
    allow_msg_ttl: true,
    allow_rollup_hdrs: true,
    discard: "new" as const,
    republish: { src: `$O.${name}.M.>`, dest: `${storeWatchPrefix(name)}.>` },
  };
}
