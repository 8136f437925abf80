import { consumer, defineApi, defineService, event, job, kv, rpc, store, use } from "@trellis/contract";
import { eventually, startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { expect, it } from "vitest";

const Order = Type.Object({ id: Type.String(), region: Type.String() });
const orders = defineApi("acme.orders@v1", {
  rpc: { "Orders.Place": rpc({ input: Order, output: Type.Object({ event: Type.String() }) }) },
  events: { "Order.Placed": event({ payload: Order, params: ["region"] }) },
});
const ordersService = defineService("acme.orders-service", {
  implements: [orders],
  kv: { placed: kv({ value: Order, history: 3 }) },
  store: { receipts: store({ maxObject: "1MiB" }) },
});
const billingService = defineService("acme.billing-service", {
  uses: [use(orders)],
  kv: { bills: kv({ value: Order }) },
  jobs: { invoice: job({ payload: Order, result: Type.Object({ number: Type.Integer() }) }) },
  consumers: { orders: consumer({ events: [orders.events["Order.Placed"]] }) },
});

it("events, buckets, stores and jobs work under exact permissions, from one contract", async () => {
  await using trellis = await startTrellis();
  await trellis.service(ordersService, (service) => {
    service.handle.rpc.orders.place(async ({ input, client }) => {
      await client.kv.placed.put(input.id, input).orThrow();
      const receipts = await client.store.receipts.open().orThrow();
      await receipts.put(`${input.region}/${input.id}`, new TextEncoder().encode("thank you")).orThrow();
      const { id } = await client.event.order.placed.publish(input).orThrow();
      return { event: id };
    });
  });
  const billed: string[] = [];
  const billing = await trellis.service(billingService, (service) => {
    service.event.order.placed.listen(async ({ event: { id, payload, params, publisher }, client }) => {
      await client.kv.bills.put(payload.id, payload).orThrow();
      await client.jobs.invoice.create(payload, { id: payload.id }).orThrow();
      expect(params).toEqual({ region: "eu" });
      expect(publisher.participant.id).toBe("acme.orders-service");
      billed.push(id);
    });
    service.jobs.invoice.handle(async ({ job, client }) => {
      const bill = await client.kv.bills.get(job.payload.id).orThrow();
      return { number: bill?.revision ?? 0 };
    });
  });
  const placed = await billing.client.rpc.orders.place({ id: "o1", region: "eu" }).orThrow();
  await eventually(() => expect(billed).toEqual([placed.event]));
  const ended = await billing.jobs.invoice.ref("o1").wait({ timeout: 10_000 }).orThrow();
  expect(ended).toMatchObject({ state: "completed", result: { number: 1 } });
  expect(ended.trigger).toEqual({ kind: "event", name: "Order.Placed", id: placed.event });
  expect((await billing.kv.bills.get("o1").orThrow())?.value).toEqual({ id: "o1", region: "eu" });
});
