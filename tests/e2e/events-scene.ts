import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { consumer, defineApi, defineService, event, use } from "@trellis/contract";
import { DEAD_LETTER_HEADERS, EVENT_HEADERS, EVENT_STREAM, readDeadLetter } from "@trellis/protocol";
import type { TestTrellis } from "@trellis/testing";
import { eventually } from "@trellis/testing";
import { Type } from "typebox";

// The cast of the tests of events: a shop that publishes, a billing that handles, and one who has no business here.

const Order = Type.Object({
  id: Type.String(),
  region: Type.String(),
  n: Type.Optional(Type.Integer()),
});

export const orders = defineApi("acme.orders@v1", {
  events: {
    "Order.Placed": event({ payload: Order, params: ["region"] }),
    "Order.Shipped": event({ payload: Order, params: ["region"] }),
  },
});
export const placed = orders.events["Order.Placed"];
export const shipped = orders.events["Order.Shipped"];
const quick = { attempts: 3, backoff: ["100ms", "100ms"] } as const;

export const shop = defineService("acme.shop", { implements: [orders] });
export const billing = defineService("acme.billing", {
  uses: [use(orders)],
  consumers: {
    billing: consumer({ events: [placed], concurrency: 8, retry: quick, ackWait: "5s" }),
    audit: consumer({
      events: [placed, shipped],
      concurrency: 4,
      retry: quick,
      ackWait: "5s",
      replay: "all",
    }),
    keyed: consumer({ events: [placed, shipped], ordering: "per-key", concurrency: 8, retry: quick }),
  },
});

/** The broker's own view, past every permission of an application. */
export function managerOf(trellis: TestTrellis): Promise<JetStreamManager> {
  return jetstreamManager(trellis.controlPlane.plane.links.app, { checkAPI: false });
}

/** The physical name of a declared consumer. */
export async function consumerOf(trellis: TestTrellis, alias: string): Promise<string> {
  const manager = await managerOf(trellis);
  for await (const { name } of manager.consumers.list(EVENT_STREAM))
    if (name.endsWith(`_${alias}`)) return name;
  throw new Error(`no consumer ${alias}`);
}

/** Events that a consumer has not seen the end of. */
export async function outstanding(trellis: TestTrellis, alias: string): Promise<number> {
  const manager = await managerOf(trellis);
  const info = await manager.consumers.info(EVENT_STREAM, await consumerOf(trellis, alias));
  return info.num_pending + info.num_ack_pending;
}

export async function storedEvents(trellis: TestTrellis): Promise<number> {
  return (await (await managerOf(trellis)).streams.info(EVENT_STREAM)).state.messages;
}

/** Every dead letter of every deployment. */
export async function deadLetters(trellis: TestTrellis) {
  const manager = await managerOf(trellis);
  const letters = [];
  for await (const { config, state } of manager.streams.list()) {
    if (!config.name.startsWith("DLQ_")) continue;
    for (let seq = state.first_seq; seq > 0 && seq <= state.last_seq; seq += 1) {
      const message = await manager.streams.getMessage(config.name, { seq });
      if (message === null) continue;
      const header = (name: string) => message.header.get(name);
      const letter = readDeadLetter(header);
      if (letter === undefined) throw new Error("a dead letter cannot be read");
      letters.push({
        ...letter,
        eventId: header(EVENT_HEADERS.id),
        messageId: header(DEAD_LETTER_HEADERS.messageId),
        body: message.string(),
      });
    }
  }
  return letters;
}

/** Waits until there are so many dead letters. */
export function deadLettersOnce(trellis: TestTrellis, count: number, timeout = 10_000) {
  return eventually(
    async () => {
      const letters = await deadLetters(trellis);
      if (letters.length < count) throw new Error(`${letters.length} dead letters`);
      return letters;
    },
    { timeout },
  );
}
