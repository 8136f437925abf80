import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { consumer, defineApi, defineService, event, use } from "@trellis/contract";
import { startNats, startTrellis } from "@trellis/testing";
import { Type } from "typebox";

const Order = Type.Object({ id: Type.Integer(), region: Type.String(), text: Type.String() });
const orders = defineApi("bench.orders@v1", {
  events: { "Order.Placed": event({ payload: Order, params: ["region"] }) },
});
const shop = defineService("bench.shop", { implements: [orders] });
const billing = defineService("bench.billing", {
  uses: [use(orders)],
  consumers: { placed: consumer({ events: [orders.events["Order.Placed"]], concurrency: 256 }) },
});

/** Publishes one event; the promise is there when it is stored, handled and acknowledged. */
export type Pass = (id: number) => Promise<void>;

/** Two brokers with one path each: ours from publish to acknowledgement, and that of the nats.js client. */
export interface EventsBed extends AsyncDisposable {
  readonly ours: Pass;
  readonly theirs: Pass;
}

const text = "x".repeat(90);

/** What waits for its event to be handled, by the event's number. */
class Arrivals {
  readonly #waiting = new Map<number, () => void>();

  expect(id: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  arrived(id: number): void {
    this.#waiting.get(id)?.();
    this.#waiting.delete(id);
  }
}

export async function makeEventsBed(): Promise<EventsBed> {
  const trellis = await startTrellis();
  const plain = await startNats();
  const [publisher, subscriber] = await Promise.all([
    connect({ servers: plain.url }),
    connect({ servers: plain.url }),
  ]);
  const theirs = await rawPath(publisher, subscriber);
  const handled = new Arrivals();
  const options = { telemetry: false } as const;
  const from = await trellis.service(shop, () => {}, options);
  await trellis.service(
    billing,
    (service) => service.event.order.placed.listen(({ event: { payload } }) => handled.arrived(payload.id)),
    options,
  );
  const { placed } = from.client.event.order;
  return {
    theirs,
    ours: async (id) => {
      const arrived = handled.expect(id);
      await placed.publish({ id, region: "eu", text }).orThrow();
      await arrived;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([publisher.close(), subscriber.close()]);
      await plain.stop();
      await trellis.stop();
    },
  };
}

async function rawPath(publisher: NatsConnection, subscriber: NatsConnection): Promise<Pass> {
  const [publishing, consuming] = [jetstream(publisher), jetstream(subscriber)];
  const manager = await jetstreamManager(publisher);
  await manager.streams.add({ name: "ORDERS", subjects: ["orders.>"], duplicate_window: 120_000_000_000 });
  await manager.consumers.add("ORDERS", {
    durable_name: "billing",
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 5_000,
  });
  const handled = new Arrivals();
  const consumer = await consuming.consumers.get("ORDERS", "billing");
  await consumer.consume({
    max_messages: 500,
    callback: (message) => {
      handled.arrived(message.json<{ id: number }>().id);
      message.ack();
    },
  });
  return async (id) => {
    const arrived = handled.expect(id);
    await publishing.publish("orders.eu", JSON.stringify({ id, region: "eu", text }), {
      msgID: `order-${id}`,
    });
    await arrived;
  };
}
