import { consumer, defineApi, defineApp, defineService, event, use } from "@trellis/contract";
import { eventsApi } from "@trellis/control-plane/core";
import { eventually, startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { expect, it } from "vitest";

const orders = defineApi("acme.orders@v1", {
  events: { "Order.Placed": event({ payload: Type.Object({ id: Type.String() }) }) },
});
const placed = orders.events["Order.Placed"];
const shop = defineService("acme.shop", { implements: [orders] });
const once = { attempts: 1, backoff: [] } as const;
const billing = defineService("acme.billing", {
  uses: [use(orders)],
  consumers: {
    bills: consumer({ events: [placed], retry: once }),
    stats: consumer({ events: [placed], retry: once }),
  },
});
const desk = defineApp("acme.desk", { uses: [use(eventsApi)] });

it("dead letters are listed, shown, replayed to their consumer alone, and discarded", async () => {
  await using trellis = await startTrellis();
  let broken = true;
  const billed: string[] = [];
  const counted: string[] = [];
  await trellis.service(billing, ({ event }) => {
    event.order.placed.listen(
      ({ event }) => {
        if (broken) throw new Error("out of paper");
        billed.push(event.payload.id);
      },
      { group: "bills" },
    );
    event.order.placed.listen(({ event }) => void counted.push(event.payload.id), { group: "stats" });
  });
  const publisher = await trellis.service(shop, () => undefined);
  const ids = ["o1", "o2", "o3", "o4"];
  for (const id of ids) await publisher.client.event.order.placed.publish({ id }).orThrow();
  const { events } = (await trellis.client(desk)).rpc;
  const where = { deployment: "acme.billing", consumer: "bills" };
  const letters = await eventually(async () => {
    const { letters } = await events.deadLettersList(where).orThrow();
    expect(letters).toHaveLength(4);
    return letters;
  });
  expect(letters[0]).toMatchObject({ event: "Order.Placed", reason: "exhausted", attempts: 1 });
  expect(letters[0]?.error.message).toBe("out of paper");
  const [first, second] = letters.map(({ sequence }) => sequence);
  const shown = await events.deadLettersGet({ ...where, sequence: first ?? 0 }).orThrow();
  expect(shown.payload).toBe('{"id":"o1"}');
  broken = false;
  expect(await events.deadLettersReplay({ ...where, sequence: first ?? 0 }).orThrow()).toEqual({
    changed: 1,
  });
  await eventually(() => expect(billed).toEqual(["o1"]));
  expect(await events.deadLettersDiscard({ ...where, sequence: second ?? 0 }).orThrow()).toEqual({
    changed: 1,
  });
  const page = await events.deadLettersReplay({ ...where, limit: 1 }).orThrow();
  expect(page).toMatchObject({ changed: 1 });
  const rest = { ...where, ...(page.cursor === undefined ? {} : { cursor: page.cursor }) };
  expect(await events.deadLettersReplay(rest).orThrow()).toEqual({ changed: 1 });
  await eventually(() => expect(billed).toEqual(["o1", "o3", "o4"]));
  expect(counted.sort((a, b) => (a < b ? -1 : 1))).toEqual(ids);
  const { consumers } = await events.consumersList({}).orThrow();
  expect(consumers.find(({ consumer }) => consumer === "bills")).toMatchObject({
    deadLetters: 0,
    pending: 0,
  });
  const gone = await events.deadLettersGet({ ...where, sequence: second ?? 0 });
  expect(gone.isErr() && gone.error.type).toBe("NotKnown");
});
