import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { consumer, defineApi, defineService, event, use } from "@trellis/contract";
import { startNats, startTrellis } from "@trellis/testing";
import { Type } from "typebox";

const orders = defineApi("bench.orders@v1", {
  events: { "Order.Placed": event({ payload: Type.Object({ n: Type.Integer(), text: Type.String() }) }) },
});
const shop = defineService("bench.shop", { implements: [orders] });
const billing = defineService("bench.billing", {
  uses: [use(orders)],
  consumers: { bills: consumer({ events: [orders.events["Order.Placed"]], concurrency: 256 }) },
});

/** Publishes an event and waits until it is stored and handled. */
export type Trip = () => Promise<unknown>;

export interface EventsBed extends AsyncDisposable {
  readonly ours: Trip;
  readonly raw: Trip;
}

/** Numbered events, and who waits for which of them. */
class Waiting {
  #next = 0;
  readonly #open = new Map<number, () => void>();

  begin(): { n: number; handled: Promise<void> } {
    const n = this.#next;
    this.#next += 1;
    return { n, handled: new Promise((resolve) => this.#open.set(n, resolve)) };
  }

  end(n: number): void {
    this.#open.get(n)?.();
    this.#open.delete(n);
  }
}

const text = "x".repeat(104);

/** The whole of Trellis on one server, the plain client on another: publisher and consumer have a socket each. */
export async function makeEventsBed(): Promise<EventsBed> {
  const trellis = await startTrellis();
  const server = await startNats();
  const [raw, ours] = [await rawTrips(server.url), await ourTrips(trellis)];
  return {
    ours,
    raw: raw.trip,
    async [Symbol.asyncDispose]() {
      await raw.close();
      await server.stop();
      await trellis.stop();
    },
  };
}

async function ourTrips(trellis: Awaited<ReturnType<typeof startTrellis>>): Promise<Trip> {
  const waiting = new Waiting();
  const { client } = await trellis.service(shop, () => {});
  await trellis.service(billing, ({ event: listening }) => {
    listening.order.placed.listen(({ event: { payload } }) => waiting.end(payload.n));
  });
  return async () => {
    const { n, handled } = waiting.begin();
    await client.event.order.placed.publish({ n, text }).orThrow();
    await handled;
  };
}

async function rawTrips(servers: string): Promise<{ trip: Trip; close(): Promise<void> }> {
  const waiting = new Waiting();
  const [publisher, listener] = [await connect({ servers }), await connect({ servers })];
  const manager = await jetstreamManager(listener);
  // As the control plane makes them.
  await manager.streams.add({
    name: "EVENTS",
    subjects: ["events.>"],
    duplicate_window: 120_000_000_000,
    allow_direct: true,
    deny_delete: true,
    deny_purge: true,
  });
  await manager.consumers.add("EVENTS", {
    durable_name: "bills",
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 5_000,
    filter_subjects: ["events.placed", "events.replay"],
  });
  const messages = await (await jetstream(listener).consumers.get("EVENTS", "bills")).consume({
    callback: (message) => {
      waiting.end(message.json<{ n: number }>().n);
      message.ack();
    },
  });
  const stream = jetstream(publisher);
  return {
    trip: async () => {
      const { n, handled } = waiting.begin();
      await stream.publish("events.placed", JSON.stringify({ n, text }), { msgID: `id-${n}` });
      await handled;
    },
    async close() {
      await messages.close();
      await publisher.close();
      await listener.close();
    },
  };
}
