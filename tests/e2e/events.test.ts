import { consumer, defineService, use } from "@trellis/contract";
import type { PreparedEvent } from "@trellis/protocol";
import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import {
  billing,
  deadLettersOnce,
  orders,
  outstanding,
  placed,
  shipped,
  shop,
  storedEvents,
} from "./events-scene.ts";

async function startShop() {
  const trellis = await startTrellis();
  const { client } = await trellis.service(shop, () => {});
  return { trellis, client, [Symbol.asyncDispose]: () => trellis.stop() };
}

const order = (n: number, region = "eu") => ({ id: `o${n}`, region, n });
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

describe("durable consumers", () => {
  it("replicas share a group's events, each event once; other groups get them all as well", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    const seen: number[][] = [[], []];
    const audited: number[] = [];
    await Promise.all(
      seen.map((list) =>
        trellis.service(billing, ({ event }) => {
          const take = async (n = -1) => {
            await new Promise((resolve) => setTimeout(resolve, 2));
            list.push(n);
          };
          event.order.placed.listen(({ event: got }) => take(got.payload.n), { group: "billing" });
          event.order.placed.listen(({ event: got }) => void audited.push(got.payload.n ?? -1), {
            group: "audit",
          });
          event.order.shipped.listen(() => {}, { group: "audit" });
        }),
      ),
    );
    await Promise.all(numbers(300).map((n) => client.event.order.placed.publish(order(n)).orThrow()));
    await eventually(() => expect(seen.flat().sort((a, b) => a - b)).toEqual(numbers(300)));
    await eventually(() => expect(audited.sort((a, b) => a - b)).toEqual(numbers(300)));
    expect(seen[0]?.length).toBeGreaterThan(20);
    expect(seen[1]?.length).toBeGreaterThan(20);
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0));
  });

  it("begins with what is new, with everything, or with an instant, as the contract says", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    await client.event.order.placed.publish(order(1)).orThrow();
    const before = await storedInstant();
    await client.event.order.placed.publish(order(2)).orThrow();
    const history = defineService("acme.history", {
      uses: [use(orders)],
      consumers: {
        news: consumer({ events: [placed], replay: "new" }),
        all: consumer({ events: [placed], replay: "all" }),
        since: consumer({ events: [placed], replay: { since: before } }),
      },
    });
    const seen: Record<"news" | "all" | "since", number[]> = { news: [], all: [], since: [] };
    await trellis.service(history, ({ event }) => {
      for (const group of ["news", "all", "since"] as const)
        event.order.placed.listen(({ event: got }) => void seen[group].push(got.payload.n ?? -1), { group });
    });
    await client.event.order.placed.publish(order(3)).orThrow();
    await eventually(() => expect(seen).toEqual({ news: [3], all: [1, 2, 3], since: [2, 3] }));
  });

  it("retries do not hold up those behind, and what never succeeds is a dead letter with its reason", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    const attempts: [number, number][] = [];
    await trellis.service(billing, ({ event }) => {
      event.order.placed.listen(
        ({ event: got, context }) => {
          const { n = -1 } = got.payload;
          attempts.push([n, context.attempt]);
          if (n === 0) throw new Error("the till is stuck");
          if (n === 1 && context.attempt < 3) throw new Error("not yet");
        },
        { group: "billing" },
      );
    });
    for (const n of numbers(20)) await client.event.order.placed.publish(order(n)).orThrow();
    const [letter] = await deadLettersOnce(trellis, 1);
    expect(letter).toMatchObject({
      reason: "exhausted",
      attempts: 3,
      error: { type: "Error", message: "the till is stuck" },
      body: JSON.stringify(order(0)),
    });
    expect(attempts.filter(([n]) => n === 1)).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ]);
    const lastRetry = attempts.findIndex(([n, attempt]) => n === 0 && attempt === 2);
    expect(attempts.findIndex(([n]) => n === 19)).toBeLessThan(lastRetry);
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0));
  });

  it("keeps the order of each key over replicas, whatever the events, and lets keys run beside each other", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    const seen = new Map<string, string[]>();
    const running = new Map<string, number>();
    let together = 0;
    const handle = async (name: string, region: string, n = -1) => {
      expect(running.get(region) ?? 0).toBe(0);
      running.set(region, 1);
      together = Math.max(together, [...running.values()].filter((count) => count > 0).length);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
      running.set(region, 0);
      seen.set(region, [...(seen.get(region) ?? []), `${name} ${n}`]);
    };
    for (const _ of [1, 2]) {
      await trellis.service(billing, ({ event }) => {
        event.order.placed.listen(({ event: got }) => handle("placed", got.payload.region, got.payload.n), {
          group: "keyed",
        });
        event.order.shipped.listen(({ event: got }) => handle("shipped", got.payload.region, got.payload.n), {
          group: "keyed",
        });
      });
    }
    const regions = ["eu", "us", "asia", "mars"];
    for (const n of numbers(25)) {
      for (const region of regions) {
        await client.event.order.placed.publish(order(n, region)).orThrow();
        await client.event.order.shipped.publish(order(n, region)).orThrow();
      }
    }
    const wanted = numbers(25).flatMap((n) => [`placed ${n}`, `shipped ${n}`]);
    await eventually(
      () => expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(regions.map((r) => [r, wanted]))),
      { timeout: 15_000 },
    );
    expect(together).toBeGreaterThan(1);
  });

  it("a prepared event is plain JSON, is published later by any replica, and is stored and handled once", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    const ids: string[] = [];
    await trellis.service(billing, ({ event }) => {
      event.order.placed.listen(({ event: got }) => void ids.push(got.id), { group: "billing" });
    });
    const other = await trellis.service(shop, () => {});
    const prepared = JSON.parse(
      JSON.stringify(client.event.order.placed.prepare(order(1)).orThrow()),
    ) as PreparedEvent;
    expect(await client.publishPrepared(prepared).orThrow()).toEqual({ id: prepared.id, duplicate: false });
    expect(await other.client.publishPrepared(prepared).orThrow()).toEqual({
      id: prepared.id,
      duplicate: true,
    });
    expect(await other.publishPrepared(prepared).orThrow()).toMatchObject({ duplicate: true });
    expect(await storedEvents(trellis)).toBe(1);
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0));
    expect(ids).toEqual([prepared.id]);
  });

  it("is published by name as well; a service stops listening and goes on", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    const seen: number[] = [];
    const listener = await trellis.service(billing, ({ event }) => {
      event.order.placed.listen(({ event: got }) => void seen.push(got.payload.n ?? -1), {
        group: "billing",
      });
    });
    expect(client.prepare("Order.Placed", order(1)).orThrow().name).toBe("Order.Placed");
    await client.publish("Order.Placed", order(1)).orThrow();
    await eventually(() => expect(seen).toEqual([1]));
    // @ts-expect-error: there is no such event
    const unknown = await client.publish("Order.Eaten", order(2));
    expect(unknown.isErr() && unknown.error).toMatchObject({
      type: "NotFoundError",
      message: expect.stringContaining("Order.Placed, Order.Shipped"),
    });
    await listener.stopEventListeners();
    await client.publish("Order.Placed", order(3)).orThrow();
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(1));
    expect(seen).toEqual([1]);
    expect(listener.connection.status.phase).toBe("connected");
  });

  it("a changed contract keeps the consumer with its place: filters widen, nothing is handled twice", async () => {
    await using scene = await startShop();
    const { trellis, client } = scene;
    const declare = (events: readonly [typeof placed] | readonly [typeof placed, typeof shipped]) =>
      defineService("acme.growing", {
        uses: [use(orders)],
        consumers: { all: consumer({ events: [...events], replay: "all" }) },
      });
    const seen: string[] = [];
    const first = await trellis.service(declare([placed]), ({ event }) => {
      event.order.placed.listen(({ event: got }) => void seen.push(`placed ${got.payload.n}`));
    });
    await client.event.order.placed.publish(order(1)).orThrow();
    await eventually(() => expect(seen).toEqual(["placed 1"]));
    await first.stop();
    await client.event.order.placed.publish(order(2)).orThrow();
    await trellis.service(declare([placed, shipped]), ({ event }) => {
      event.order.placed.listen(({ event: got }) => void seen.push(`placed ${got.payload.n}`));
      event.order.shipped.listen(({ event: got }) => void seen.push(`shipped ${got.payload.n}`));
    });
    await client.event.order.shipped.publish(order(3)).orThrow();
    await eventually(() => expect(seen).toEqual(["placed 1", "placed 2", "shipped 3"]));
  });
});

/** An instant that lies between what was stored before and what is stored after. */
async function storedInstant(): Promise<string> {
  const instant = Date.now() + 5;
  await eventually(() => Date.now() > instant + 5);
  return new Date(instant).toISOString();
}
