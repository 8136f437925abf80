import { defineApp, use } from "@trellis/contract";
import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { managerOf, orders, shop } from "./events-scene.ts";

const board = defineApp("acme.board", { uses: [use(orders)] });
const order = (n: number, region = "eu") => ({ id: `o${n}`, region, n });

async function start() {
  const trellis = await startTrellis();
  const service = await trellis.service(shop, () => {});
  const client = await trellis.client(board);
  return {
    trellis,
    service,
    client,
    placed: service.client.event.order.placed,
    [Symbol.asyncDispose]: () => trellis.stop(),
  };
}

describe("an ephemeral listener", () => {
  it("of an app hears what comes from now on, or everything, filtered by params, and leaves nothing behind", async () => {
    await using scene = await start();
    const { client, placed, trellis } = scene;
    await placed.publish(order(1)).orThrow();
    await placed.publish(order(2, "us")).orThrow();
    const seen: Record<string, number[]> = { news: [], all: [], us: [] };
    const note =
      (name: string) =>
      ({ event }: { event: { payload: { n?: number } } }) =>
        void seen[name]?.push(event.payload.n ?? -1);
    const { listen } = client.event.order.placed;
    const leaving = new AbortController();
    await listen(note("news"), { mode: "ephemeral", signal: leaving.signal }).orThrow();
    await listen(note("all"), { mode: "ephemeral", replay: "all" }).orThrow();
    const us = await listen(note("us"), {
      mode: "ephemeral",
      replay: "all",
      params: { region: "us" },
    }).orThrow();
    await placed.publish(order(3)).orThrow();
    await placed.publish(order(4, "us")).orThrow();
    await eventually(() => expect(seen).toEqual({ news: [3, 4], all: [1, 2, 3, 4], us: [2, 4] }));
    leaving.abort();
    us.stop();
    await placed.publish(order(5, "us")).orThrow();
    await eventually(() => expect(seen).toEqual({ news: [3, 4], all: [1, 2, 3, 4, 5], us: [2, 4] }));
    client.stopEventListeners();
    const consumers = [];
    for await (const { config } of (await managerOf(trellis)).consumers.list("TRELLIS_EVENTS"))
      consumers.push(config);
    expect(consumers.every(({ inactive_threshold }) => inactive_threshold === 60_000_000_000)).toBe(true);
  });

  it("is resumed after the broker was lost: every event once, in order", async () => {
    await using scene = await start();
    const { client, placed, trellis } = scene;
    const seen: number[] = [];
    await client.event.order.placed
      .listen(({ event }) => void seen.push(event.payload.n ?? -1), { mode: "ephemeral" })
      .orThrow();
    for (let n = 0; n < 90; n += 1) {
      if (n % 30 === 20) await trellis.restartNats({ kill: n > 30 });
      await placed.publish(order(n)).orThrow();
    }
    await eventually(() => expect(seen).toEqual(Array.from({ length: 90 }, (_, n) => n)), {
      timeout: 20_000,
    });
  }, 60_000);

  it("of a service works beside its groups and at any time; there are eight, and a name that is none is refused", async () => {
    await using scene = await start();
    const { service, placed } = scene;
    const seen: number[] = [];
    const { listen } = service.event.order.placed;
    const open = [];
    for (let n = 0; n < 8; n += 1)
      open.push(await listen(() => void seen.push(n), { mode: "ephemeral" }).orThrow());
    const ninth = await listen(() => {}, { mode: "ephemeral" });
    expect(ninth.isErr() && ninth.error.type).toBe("BusyError");
    await placed.publish(order(1)).orThrow();
    await eventually(() => expect(seen.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]));
    open[3]?.stop();
    await listen(() => void seen.push(8), { mode: "ephemeral" }).orThrow();
    const odd = await scene.client.event.order.placed.listen(() => {}, {
      mode: "ephemeral",
      // @ts-expect-error: it has no such parameter
      params: { planet: "mars" },
    });
    expect(odd.isErr() && odd.error).toMatchObject({
      type: "ValidationError",
      errors: [{ path: "/params/planet" }],
    });
  });
});
