import { type JetStreamManager, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { kvPrefix, kvStreamName, kvWatchPrefix, storeStreamName, storeWatchPrefix } from "@trellis/protocol";
import { startNats, type TestNats } from "@trellis/testing";
import { Broker } from "../connect/broker.ts";
import { Inbox } from "../connect/inbox.ts";
import type { LinkListener } from "../connect/link.ts";
import { TimerWheel } from "../lifecycle/timer-wheel.ts";
import { silentLogger } from "../logging/logger.ts";
import { nodePort } from "../platform/node/port.ts";
import { BrokerRequests, type RequestLink } from "./broker-requests.ts";

/** A link without a control plane: the broker alone, everything allowed. */
export interface TestLink extends RequestLink {
  readonly platform: { readonly port: typeof nodePort };
  readonly log: typeof silentLogger;
  readonly nats: NatsConnection;
  readonly requests: BrokerRequests;
  close(): Promise<void>;
}

let connections = 0;

export async function openTestLink(servers: string, options: { user?: string } = {}): Promise<TestLink> {
  const nats = await connect({
    servers,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    reconnectJitter: 20,
    ...(options.user === undefined ? {} : { user: options.user, pass: options.user }),
  });
  const listeners = new Set<LinkListener>();
  const tell = (call: (listener: LinkListener) => void) => {
    for (const listener of [...listeners]) call(listener);
  };
  const wheel = new TimerWheel();
  let closed = false;
  const broker = new Broker(
    nats,
    {
      onDown: () => tell((listener) => listener.onDown?.()),
      onDialing: () => {},
      onRefused: () => {},
      onUp: () => tell((listener) => listener.onUp?.()),
      onClosed: () => {},
    },
    silentLogger,
  );
  connections += 1;
  const answers = new Inbox(nodePort, `test-${process.pid}-${connections}`, "j");
  answers.listen(broker, () => {});
  const link = {
    broker,
    answers,
    wheel,
    nats,
    platform: { port: nodePort },
    log: silentLogger,
    get isClosed() {
      return closed;
    },
    listen(listener: LinkListener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async close() {
      closed = true;
      tell((listener) => listener.onClosed?.("stopped"));
      wheel.stop();
      await broker.close();
    },
  };
  return { ...link, isClosed: false, requests: new BrokerRequests(link), ...dynamic(link) };
}

/** Spreading would freeze the getter. */
function dynamic(link: { readonly isClosed: boolean }): object {
  return Object.defineProperty({}, "isClosed", { enumerable: true, get: () => link.isClosed });
}

/** A server, an administrator of its streams, and links to it. */
export interface Streams extends AsyncDisposable {
  readonly nats: TestNats;
  readonly admin: NatsConnection;
  readonly manager: JetStreamManager;
  link(servers?: string): Promise<TestLink>;
  /** A bucket as the control plane makes it. */
  addBucket(bucket: string, changes?: Partial<StreamConfig>): Promise<void>;
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
    async link(servers = nats.url) {
      const link = await openTestLink(servers);
      links.push(link);
      return link;
    },
    async addBucket(bucket, changes = {}) {
      await manager.streams.add({ ...bucketConfig(bucket), ...changes });
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
