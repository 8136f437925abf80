import { consumer, defineApi, defineService, event, use } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cliParticipant } from "../admin/participants.ts";

const orders = defineApi("acme.orders@v1", {
  events: {
    "Order.Placed": event({
      payload: Type.Object({ n: Type.Integer(), region: Type.String() }),
      params: ["region"],
    }),
    Noted: event({ payload: Type.Object({ text: Type.String() }) }),
  },
});
const shop = defineService("acme.shop", { implements: [orders] });
const once = { attempts: 1, backoff: [] } as const;
const billing = defineService("acme.billing", {
  uses: [use(orders)],
  consumers: {
    bills: consumer({ events: [orders.events["Order.Placed"]], retry: once, concurrency: 4 }),
    others: consumer({ events: [orders.events["Order.Placed"]], retry: once }),
  },
});

let trellis: TestTrellis;
let failing = true;
const billed: number[] = [];
const others: number[] = [];

beforeAll(async () => {
  trellis = await startTrellis();
  const { client } = await trellis.service(shop, () => {});
  await trellis.service(billing, (service) => {
    const { placed } = service.event.order;
    placed.listen(
      ({ event: { payload } }) => {
        if (failing) throw new Error("the till is stuck");
        billed.push(payload.n);
      },
      { group: "bills" },
    );
    placed.listen(({ event: { payload } }) => void others.push(payload.n), { group: "others" });
  });
  for (let n = 0; n < 25; n += 1) await client.event.order.placed.publish({ n, region: "eu" }).orThrow();
  await client.event.noted.noted.publish({ text: "hello" }).orThrow();
}, 60_000);
afterAll(() => trellis.stop());

async function admin() {
  return (await trellis.client(cliParticipant)).rpc.events;
}

describe("the events API", () => {
  it("counts consumers' dead letters, and gives them page by page, by reason, and one with its payload", async () => {
    const events = await admin();
    await eventually(async () => {
      const { consumers } = await events.consumersList({ deployment: "acme.billing" }).orThrow();
      const counts = Object.fromEntries(consumers.map((row) => [row.consumer, row.deadLetters]));
      expect(counts).toEqual({ bills: 25, others: 0 });
    });
    const ns: number[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const at = cursor === undefined ? {} : { cursor };
      const page = await events.deadLettersList({ deployment: "acme.billing", limit: 10, ...at }).orThrow();
      ns.push(...page.deadLetters.map(({ sequence }) => sequence));
      cursor = page.cursor;
      pages += 1;
    } while (cursor !== undefined);
    expect(new Set(ns).size).toBe(25);
    expect(pages).toBe(3);
    const of = (filter: { consumer?: string; reason?: string }) =>
      events.deadLettersList({ deployment: "acme.billing", ...filter }).orThrow();
    expect((await of({ consumer: "others" })).deadLetters).toEqual([]);
    expect((await of({ reason: "schema_mismatch" })).deadLetters).toEqual([]);
    expect((await of({ consumer: "bills", reason: "exhausted" })).deadLetters).toHaveLength(25);
    const sequence = Math.min(...ns);
    const where = { deployment: "acme.billing", consumer: "bills", sequence };
    const { deadLetter } = await events.deadLettersGet(where).orThrow();
    expect(deadLetter).toMatchObject({
      event: "Order.Placed",
      api: "acme.orders@v1",
      reason: "exhausted",
      error: { message: "the till is stuck" },
      payload: '{"n":0,"region":"eu"}',
    });
  });

  it("replays to the one consumer, once; discards; and says what is not there", async () => {
    const events = await admin();
    const where = { deployment: "acme.billing", consumer: "bills" };
    const { deadLetters } = await events.deadLettersList(where).orThrow();
    const sequences = deadLetters.map(({ sequence }) => sequence).sort((a, b) => a - b);
    const [first = 0, ...rest] = sequences;
    await eventually(() => expect(others).toHaveLength(25));
    failing = false;
    const discarded = await events.deadLettersDiscard({ ...where, sequences: [first, 99_999] }).orThrow();
    expect(discarded).toEqual({ done: [first], missing: [99_999] });
    const replayed = await events.deadLettersReplay({ ...where, sequences: rest }).orThrow();
    expect(replayed).toEqual({ done: rest, missing: [] });
    expect((await events.deadLettersReplay({ ...where, sequences: rest }).orThrow()).missing).toEqual(rest);
    await eventually(() => expect(billed.sort((a, b) => a - b)).toEqual(rest.map((_, n) => n + 1)));
    expect(others).toHaveLength(25);
    for (const refused of [
      await events.deadLettersGet({ ...where, sequence: first }),
      await events.deadLettersList({ deployment: "acme.nobody" }),
      await events.deadLettersList({ deployment: "acme.billing", consumer: "a.*" }),
    ])
      expect(refused.isErr() && refused.error.type).toBe("NotKnown");
  });

  it("shows the newest events, those of a name, and goes on from where it was", async () => {
    const events = await admin();
    const newest = await events.recent({ limit: 3, events: ["Order.Placed"] }).orThrow();
    expect(newest.events.map(({ payload }) => payload)).toEqual(
      [22, 23, 24].map((n) => `{"n":${n},"region":"eu"}`),
    );
    expect(newest.events[0]).toMatchObject({ event: "Order.Placed", params: ["eu"], api: orders.id });
    const first = await events.recent({ since: 0, limit: 20 }).orThrow();
    const second = await events.recent({ after: first.sequence, limit: 200 }).orThrow();
    expect(first.events).toHaveLength(20);
    expect(second.events.map(({ event: name }) => name)).toContain("Noted");
    expect((await events.recent({ after: second.sequence }).orThrow()).events).toEqual([]);
  });
});
