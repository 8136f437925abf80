import { AckPolicy, type ConsumerConfig, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection, headers as natsHeaders } from "@nats-io/transport-node";
import { type ConsumerResource, consumer, defineApi, defineService, event, use } from "@trellis/contract";
import {
  type ConsumerBinding,
  type DeadLetter,
  eventFilter,
  readDeadLetter,
  replaySubject,
  toHex,
} from "@trellis/protocol";
import { eventually, startNats, type TestNats } from "@trellis/testing";
import { Type } from "typebox";
import { createConnectionKeys } from "../connect/connection-keys.ts";
import { nodePort as port } from "../platform/node/port.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { authorize, EventLink, type LinkOptions } from "./event-link.test-kit.ts";
import type { EventListenFacade } from "./event-listeners.ts";
import type { EventPublishFacade, PublishPrepared } from "./event-publishers.ts";
import { ListeningSurface } from "./listening-surface.ts";
import { PublishingSurface } from "./publishing-surface.ts";

export { authorize, EventLink } from "./event-link.test-kit.ts";

const Order = Type.Object({
  id: Type.String(),
  region: Type.String(),
  n: Type.Optional(Type.Number()),
  pad: Type.Optional(Type.String()),
});

export const orders = defineApi("acme.orders@v1", {
  events: {
    "Order.Placed": event({ payload: Order, params: ["region"] }),
    "Order.Shipped": event({ payload: Order, params: ["region"] }),
    "Order.Tagged": event({
      payload: Type.Object({ tenant: Type.Number(), flag: Type.Union([Type.Boolean(), Type.String()]) }),
      params: ["tenant", "flag"],
    }),
    Noted: event({ payload: Type.Object({ text: Type.String() }) }),
  },
});

const placed = orders.events["Order.Placed"];
const shipped = orders.events["Order.Shipped"];
const quick = { attempts: 3, backoff: ["40ms", "40ms"] } as const;

export const shop = defineService("acme.shop", { implements: [orders] });

export const billing = defineService("acme.billing", {
  uses: [use(orders)],
  consumers: {
    placed: consumer({ events: [placed], retry: quick, concurrency: 8 }),
    one: consumer({ events: [placed], retry: quick }),
    three: consumer({ events: [placed], retry: quick, concurrency: 3 }),
    once: consumer({ events: [placed], retry: { attempts: 1, backoff: [] } }),
    both: consumer({ events: [placed, shipped], retry: quick, concurrency: 4 }),
    tagged: consumer({ events: [orders.events["Order.Tagged"]], retry: quick }),
    keyed: consumer({ events: [placed, shipped], ordering: "per-key", retry: quick, concurrency: 8 }),
    wide: consumer({ events: [placed], retry: quick, concurrency: 256 }),
  },
});

export type Shop = typeof shop;
export type Billing = typeof billing;

/** A dead letter as it is stored. */
export interface Letter extends DeadLetter {
  readonly body: string;
  readonly eventId: string;
  readonly messageId: string;
}

/** A server with the streams of events, publishers and consumers on it. */
export class EventBed {
  readonly nats: TestNats;
  readonly admin: NatsConnection;
  readonly manager: JetStreamManager;
  /** What `ctl.get` finds, by subject: everything the control plane would have stored. */
  readonly store: Map<string, string>;
  readonly #links: EventLink[] = [];
  readonly #stops: (() => Promise<void>)[] = [];

  constructor(parts: {
    nats: TestNats;
    admin: NatsConnection;
    manager: JetStreamManager;
    store: Map<string, string>;
  }) {
    this.nats = parts.nats;
    this.admin = parts.admin;
    this.manager = parts.manager;
    this.store = parts.store;
  }

  async link(deployment: string, options: LinkOptions = {}): Promise<EventLink> {
    const { user } = options;
    const nats = await connect({
      servers: options.servers ?? this.nats.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 20,
      reconnectJitter: 20,
      ...(user === undefined ? {} : { user, pass: user }),
    });
    const keys = createConnectionKeys(port, undefined).orThrow();
    const session = authorize(this.store, { ...options, deployment, keys });
    const link = new EventLink(nats, { keys, session, log: options.log });
    this.#links.push(link);
    return link;
  }

  /** A publisher with what its client would have. */
  async shop(deployment = "shop1", options: LinkOptions & { timeoutMs?: number } = {}) {
    const link = await this.link(deployment, { owns: [orders], ...options });
    return { link, ...publishing(link, options.timeoutMs) };
  }

  /** Makes the durable consumer of an alias, as the control plane would. */
  async provision(
    alias: keyof Billing["consumers"],
    changes: Partial<ConsumerConfig> = {},
  ): Promise<ConsumerBinding> {
    return provision(this.manager, { resource: billing.consumers[alias], alias }, changes);
  }

  /** A replica of the service that listens; `listen` registers. */
  async replica(
    bindings: Readonly<Record<string, ConsumerBinding>>,
    listen: (event: EventListenFacade<Billing, Outer>) => void,
    options: LinkOptions & { readonly traced?: boolean } = {},
  ) {
    const link = await this.link("billing1", options);
    const surface = listening(link, bindings, options.traced);
    listen(surface.facade as EventListenFacade<Billing, Outer>);
    surface.start();
    const stop = (ms = 2_000) => stopSurface(surface, ms);
    this.#stops.push(() => stop(50));
    return { link, surface, stop };
  }

  async letters(): Promise<Letter[]> {
    const stream = await this.manager.streams.info("DLQ_test").catch(() => undefined);
    const letters: Letter[] = [];
    const { first_seq = 1, last_seq = 0 } = stream?.state ?? {};
    for (let seq = first_seq; seq <= last_seq; seq += 1) {
      const message = await this.manager.direct.getMessage("DLQ_test", { seq }).catch(() => null);
      if (message === null) continue;
      const header = (name: string) => message.header.get(name);
      const letter = readDeadLetter(header);
      if (letter === undefined) throw new Error("a dead letter cannot be read");
      const [eventId, messageId] = [header("Trellis-Event-Id"), header("Trellis-Dead-Message-Id")];
      letters.push({ ...letter, body: message.string(), eventId, messageId });
    }
    return letters;
  }

  /** Waits until there are so many dead letters. */
  async lettersOnce(count: number): Promise<Letter[]> {
    return eventually(async () => {
      const letters = await this.letters();
      if (letters.length < count) throw new Error(`${letters.length} dead letters`);
      return letters;
    });
  }

  async stored(): Promise<number> {
    return (await this.manager.streams.info("TRELLIS_EVENTS")).state.messages;
  }

  /** Events that the consumer has not seen the end of. */
  async outstanding({ consumer: name }: ConsumerBinding): Promise<number> {
    const { num_pending, num_ack_pending } = await this.manager.consumers.info("TRELLIS_EVENTS", name);
    return num_pending + num_ack_pending;
  }

  /** Publishes without being a publisher of ours. */
  async forge(subject: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const made = natsHeaders();
    for (const [name, value] of Object.entries(headers)) made.set(name, value);
    await this.admin.request(subject, body, { headers: made, timeout: 2_000 });
  }

  /** Ends every replica and connection, and forgets every event: the next test begins anew. */
  async reset(): Promise<void> {
    await Promise.all(this.#stops.splice(0).map((stop) => stop()));
    await Promise.all(this.#links.splice(0).map((link) => link.close()));
    for await (const { name } of this.manager.consumers.list("TRELLIS_EVENTS")) {
      await this.manager.consumers.delete("TRELLIS_EVENTS", name);
    }
    await this.manager.streams.purge("TRELLIS_EVENTS");
    await this.manager.streams.purge("DLQ_test");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#stops.map((stop) => stop()));
    await Promise.all(this.#links.map((link) => link.close()));
    await this.admin.close();
    await this.nats.stop();
  }
}

/** What handlers get as their client in these tests: the request that they work on. */
export interface Outer {
  readonly origin: CallOrigin;
}

export function publishing(link: EventLink, timeoutMs = 10_000) {
  const surface = new PublishingSurface({
    participant: shop,
    link,
    requests: link.requests,
    timeoutMs,
    traced: true,
  });
  const event = surface.facade(undefined) as EventPublishFacade<Shop>;
  const publishPrepared: PublishPrepared = surface.publishPrepared(undefined);
  return { event, publishPrepared, surface };
}

export function listening(
  link: EventLink,
  bindings: Readonly<Record<string, ConsumerBinding>>,
  traced = true,
): ListeningSurface<Outer> {
  return new ListeningSurface<Outer>({
    participant: billing,
    link,
    requests: link.requests,
    traced,
    binding: (alias) => bindings[alias],
    clientFor: (origin) => ({ origin }),
  });
}

async function stopSurface(surface: ListeningSurface<Outer>, ms: number): Promise<void> {
  const { Deadline } = await import("../lifecycle/deadline.ts");
  await surface.stop(Deadline.after(ms));
}

export const eventStream = {
  name: "TRELLIS_EVENTS",
  subjects: ["events.v1.>"],
  allow_direct: true,
  duplicate_window: 120_000_000_000,
};

export async function provision(
  manager: JetStreamManager,
  { resource, alias }: { resource: ConsumerResource; alias: string },
  changes: Partial<ConsumerConfig> = {},
): Promise<ConsumerBinding> {
  const name = `${toHex(port.random(16))}_${alias}`;
  const filters = resource.events.map(({ api, name: action, params }) =>
    eventFilter({ api, action, params: params.map(() => undefined) }),
  );
  const ordered = resource.ordering === "per-key";
  await manager.consumers.add("TRELLIS_EVENTS", {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    ack_wait: 5_000_000_000,
    max_deliver: -1,
    max_ack_pending: 5_000,
    filter_subjects: [...filters, replaySubject(name)],
    ...(ordered
      ? { priority_groups: ["key"], priority_policy: "pinned_client", priority_timeout: 5_000_000_000 }
      : {}),
    ...changes,
  });
  return {
    stream: "TRELLIS_EVENTS",
    consumer: name,
    ackWaitMs: (changes.ack_wait ?? 5_000_000_000) / 1_000_000,
    deadLetters: `dlq.v1.test_${alias}`,
  };
}

export async function startEvents(config?: string): Promise<EventBed> {
  const nats = await startNats(config === undefined ? {} : { config });
  const admin = await connect({
    servers: nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    ...(config === undefined ? {} : { user: "admin", pass: "admin" }),
  });
  const manager = await jetstreamManager(admin, { checkAPI: false });
  await manager.streams.add(eventStream);
  await manager.streams.add({
    name: "DLQ_test",
    subjects: ["dlq.v1.>"],
    max_msgs_per_subject: 1,
    allow_direct: true,
  });
  const store = new Map<string, string>();
  admin.subscribe("ctl.get.>", {
    callback: (_error, message) => {
      const found = store.get(message.subject);
      const answer = found === undefined ? natsHeaders(404, "Message Not Found") : natsHeaders();
      if (found !== undefined) answer.set("Nats-Sequence", "1");
      message.respond(found ?? "", { headers: answer });
    },
  });
  await admin.flush();
  return new EventBed({ nats, admin, manager, store });
}

let count = 0;

/** A payload like no other. */
export function order(changes: { id?: string; region?: string; n?: number; pad?: string } = {}) {
  count += 1;
  return { id: `o-${count}`, region: "eu", ...changes };
}
