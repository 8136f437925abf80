import type { Connection } from "@trellis/runtime";
import { eventually, startFaultProxy, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import {
  type Produced,
  Reader,
  type TicksService,
  through,
  tickProducers,
  ticksApp,
  ticksService,
} from "./feeds-kit.ts";
import { count, pause, watchUnhandled } from "./kit.ts";

/** The broker may leave a dial without an answer for some seconds when it went down in the middle of it. */
async function connected(...all: { readonly connection: Connection }[]): Promise<void> {
  for (const { connection } of all) {
    await eventually(() => expect(connection.status.phase).toBe("connected"), { timeout: 15_000 });
  }
}

describe.concurrent("the broker is restarted under feeds", () => {
  it.each([{ kill: true }, { kill: false }])(
    "that are full of items: none is lost, none comes twice (kill: $kill)",
    async ({ kill }) => {
      using unhandled = watchUnhandled();
      await using trellis = await startTrellis();
      let produced: Produced | undefined;
      const service = await trellis.service(ticksService, (it) => {
        produced = tickProducers(it);
      });
      const client = await trellis.client(ticksApp);
      const full = Array.from({ length: 4 }, () => new Reader(client.feed.ticks.count({})));
      const steady = new Reader(client.feed.ticks.count({ perSecond: 100 }));
      const idle = client.feed.ticks.quiet();
      await idle.next();
      for (let round = 0; round < count(20, 4); round += 1) {
        await pause(Math.random() * 300);
        await trellis.restartNats({ kill });
        await connected(service, client);
        // What had arrived before is a window at the most.
        const wanted = [...full.map(({ last }) => last + 64 * 256), steady.last + 50];
        await eventually(
          () => {
            for (const [at, reader] of [...full, steady].entries()) {
              if (reader.error !== undefined) throw reader.error;
              expect(reader.last).toBeGreaterThan(wanted[at] ?? 0);
            }
          },
          { timeout: 15_000 },
        );
      }
      expect([...full, steady].flatMap(({ wrong }) => wrong)).toEqual([]);
      // Each session had one producer for all of its life.
      expect(produced).toMatchObject({ started: 6, running: 6 });
      const parked = idle.next();
      await idle.return();
      expect(await parked).toEqual({ done: true, value: undefined });
      await client.close();
      await eventually(() => expect(produced?.running).toBe(0), { timeout: 2_000 });
      expect(unhandled.seen).toEqual([]);
    },
    60_000,
  );

  it("that are left while it is away: their producers end as soon as it is back", async () => {
    await using trellis = await startTrellis();
    let produced: Produced | undefined;
    await trellis.service(ticksService, (service) => {
      produced = tickProducers(service);
    });
    await using proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const client = await trellis.client(ticksApp, { platform: through(proxy.address) });
    const left = client.feed.ticks.quiet();
    const kept = client.feed.ticks.quiet();
    await Promise.all([left.next(), kept.next()]);
    await proxy.refuse(true);
    proxy.cut();
    await eventually(() => expect(client.connection.status.phase).toBe("reconnecting"));
    await left.return();
    await proxy.refuse(false);
    await eventually(() => expect(client.connection.status.phase).toBe("connected"));
    await eventually(() => expect(produced).toMatchObject({ running: 1 }), { timeout: 2_000 });
    await kept.return();
    await eventually(() => expect(produced).toMatchObject({ running: 0 }), { timeout: 1_000 });
  });

  it("while a loop is busy with an item for 15 s: what came meanwhile is there when it goes on", async () => {
    await using trellis = await startTrellis();
    await trellis.service(ticksService, (service) => void tickProducers(service));
    const client = await trellis.client(ticksApp);
    const reader = new Reader(client.feed.ticks.count({ perSecond: 20 }), async (n) => {
      if (n !== 5) return;
      await trellis.restartNats({ kill: true });
      await pause(15_000);
    });
    await eventually(() => expect(reader.last).toBeGreaterThan(250), { timeout: 35_000 });
    expect(reader).toMatchObject({ wrong: [], error: undefined });
  }, 80_000);

  it("and one side is without it for some seconds: what is sent meanwhile is not lost", async () => {
    await using trellis = await startTrellis();
    let produced: Produced | undefined;
    await using providers = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    await using consumers = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const setup = (service: TicksService) => {
      produced = tickProducers(service);
    };
    await trellis.service(ticksService, setup, { platform: through(providers.address) });
    const client = await trellis.client(ticksApp, { platform: through(consumers.address) });
    const reader = new Reader(client.feed.ticks.count({ perSecond: 200 }));
    for (const proxy of [consumers, providers]) {
      const { last } = reader;
      await eventually(() => expect(reader.last).toBeGreaterThan(last + 20));
      await proxy.refuse(true);
      proxy.cut();
      // Longer than the platform waits before it says that the connection has ended.
      await pause(2_500);
      const { last: missed } = reader;
      await proxy.refuse(false);
      await eventually(() => expect(reader.last).toBeGreaterThan(missed + 450));
    }
    expect(reader).toMatchObject({ wrong: [], error: undefined });
    expect(produced).toMatchObject({ started: 1, running: 1 });
  });

  it("and a consumer is without it for longer: the feed ends at both sides, for a reason", async () => {
    await using trellis = await startTrellis();
    let produced: Produced | undefined;
    await trellis.service(ticksService, (service) => {
      produced = tickProducers(service);
    });
    await using proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const client = await trellis.client(ticksApp, { platform: through(proxy.address) });
    const reader = new Reader(client.feed.ticks.count({ perSecond: 100 }));
    await eventually(() => expect(reader.last).toBeGreaterThan(5));
    await proxy.refuse(true);
    proxy.cut();
    await eventually(() => expect(produced).toMatchObject({ running: 0, reasons: ["caller_gone"] }), {
      timeout: 8_000,
    });
    expect(reader.error).toBeUndefined();
    await proxy.refuse(false);
    await eventually(() => expect(reader.error).toBeDefined(), { timeout: 5_000 });
    expect(reader).toMatchObject({ wrong: [], error: { type: "FeedError", reason: "delivery_gap" } });
    // Opened again it works.
    expect((await client.feed.ticks.quiet().next()).value).toBe("provider");
  });
});
