import { defineApi, defineApp, defineService, feed, use } from "@trellis/contract";
import { eventually, startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { type Produced, Reader, tickProducers, ticks, ticksApp, ticksService } from "./feeds-kit.ts";
import { count, heap, pause, timed } from "./kit.ts";

const later = defineApi("faults.later@v1", { feeds: { Later: feed({ event: Type.String() }) } });

describe.concurrent("a slow consumer", () => {
  it("beside a fast one on the same connection slows neither that one nor its calls", async () => {
    await using trellis = await startTrellis();
    let produced: Produced | undefined;
    await trellis.service(ticksService, (service) => {
      produced = tickProducers(service);
    });
    const client = await trellis.client(ticksApp);
    const stalled = client.feed.ticks.count({});
    await stalled.next();
    const slow = new Reader(client.feed.ticks.count({}), () => pause(1_000));
    const fast = new Reader(client.feed.ticks.count({ to: 200_000 }));
    await fast.over;
    expect(fast).toMatchObject({ last: 200_000, wrong: [], error: null });
    const calls: number[] = [];
    for (let call = 0; call < 100; call += 1) {
      const { ms } = await timed(() => client.rpc.ticks.echo(1).orThrow());
      calls.push(ms);
    }
    const middle = calls.sort((a, b) => a - b)[calls.length >> 1] ?? Number.NaN;
    expect(middle).toBeLessThan(50);
    // The others are held to what their windows take.
    expect(produced?.items).toBeLessThan(200_000 + 2 * 66 * 256);
    // The one that reads nothing at all is given up; the one that reads an item a second goes on, though a frame
    // lasts it longer than that.
    const { ms } = await timed(() =>
      eventually(() => expect(produced?.running).toBe(1), { timeout: 40_000 }),
    );
    expect(ms).toBeLessThan(33_000);
    expect(produced?.reasons).toEqual(["consumer_slow"]);
    const { last } = slow;
    await eventually(() => expect(slow.last).toBeGreaterThan(last + 2));
    expect(slow).toMatchObject({ wrong: [], error: undefined });
    const ended = await stalled.ended;
    expect(ended.isErr() && ended.error).toMatchObject({ type: "FeedError", reason: "consumer_slow" });
  }, 80_000);
});

describe.concurrent("a provider that stops", () => {
  it("is not held up by a consumer that does not read, nor by a producer that ignores its signal", async () => {
    await using trellis = await startTrellis();
    let begun = false;
    const service = await trellis.service(ticksService, (it) => {
      tickProducers(it);
      // Registered around the producers: one that never ends, whatever it is told.
      it.use(({ name }, next) => {
        if (name !== "Ticks.Quiet") return next();
        begun = true;
        return new Promise(() => {});
      });
    });
    const client = await trellis.client(ticksApp);
    const stalled = client.feed.ticks.count({});
    await stalled.next();
    const deaf = client.feed.ticks.quiet();
    const told = expect(deaf.next()).rejects.toMatchObject({ type: "FeedError", reason: "stopped" });
    await eventually(() => expect(begun).toBe(true));
    const { ms } = await timed(() => service.stop({ timeout: 5_000 }));
    expect(ms).toBeLessThan(6_000);
    const ended = await stalled.ended;
    expect(ended.isErr() && ended.error).toMatchObject({ type: "FeedError", reason: "stopped" });
    await told;
  });
});

describe.concurrent("a feed on which nothing happens", () => {
  it("stays open while the control plane and its clocks go on", async () => {
    // Authorizations that live for 6 s: each session outlives several of them.
    await using trellis = await startTrellis({
      controlPlane: { authorization: { lifeMs: 6_000 }, failuresPerMinute: 10_000 },
    });
    let produced: Produced | undefined;
    await trellis.service(ticksService, (service) => {
      produced = tickProducers(service);
    });
    const client = await trellis.client(ticksApp);
    const quiet = Array.from({ length: 100 }, () => client.feed.ticks.quiet());
    await Promise.all(quiet.map((stream) => stream.next()));
    const steady = new Reader(client.feed.ticks.count({ perSecond: 20 }));
    const parked = quiet.map((stream) => stream.next());
    const ended = Promise.race(parked.map((next) => next.catch((error: unknown) => error)));
    const first = await Promise.race([ended, pause(36_000)]);
    expect(first).toBeUndefined();
    expect(produced).toMatchObject({ started: 101, running: 101 });
    expect(steady).toMatchObject({ wrong: [], error: undefined });
    expect(steady.last).toBeGreaterThan(500);
    await Promise.all(quiet.map((stream) => stream.return()));
    await eventually(() => expect(produced).toMatchObject({ running: 1 }), { timeout: 2_000 });
  }, 80_000);
});

describe.concurrent("a consumer that is allowed more", () => {
  it("takes a new socket for it, and its feeds go on", async () => {
    await using trellis = await startTrellis({
      controlPlane: { authorization: { lifeMs: 3_000 }, failuresPerMinute: 10_000 },
    });
    await trellis.service(ticksService, (service) => void tickProducers(service));
    // Uses an API that nobody provides yet.
    const client = await trellis.client(defineApp("faults.curious", { uses: [use(ticks), use(later)] }));
    const phases: string[] = [];
    client.connection.subscribe(({ phase }) => void phases.push(phase));
    const reader = new Reader(client.feed.ticks.count({ perSecond: 50 }));
    await eventually(() => expect(reader.last).toBeGreaterThan(20));
    await trellis.service(defineService("faults.later-service", { implements: [later] }), ({ handle }) =>
      handle.feed.later.later(async ({ emit }) => emit("at last")),
    );
    const late = client.feed.later.later(undefined, { timeout: 20_000 });
    expect((await late.next()).value).toBe("at last");
    const { last } = reader;
    await eventually(() => expect(reader.last).toBeGreaterThan(last + 50));
    expect(reader).toMatchObject({ wrong: [], error: undefined });
    expect(phases.filter((phase) => phase === "connected")).toHaveLength(2);
  });
});

describe("the memory of a feed", () => {
  it("is flat, however many items go through", async () => {
    await using trellis = await startTrellis();
    await trellis.service(ticksService, (service) => void tickProducers(service));
    const client = await trellis.client(ticksApp);
    await new Reader(client.feed.ticks.count({ to: 50_000 })).over;
    const before = await heap();
    const reader = new Reader(client.feed.ticks.count({ to: count(1_000_000, 200_000) }));
    await eventually(() => expect(reader.last).toBeGreaterThan(100_000), { timeout: 30_000 });
    const during = await heap();
    await reader.over;
    expect(reader).toMatchObject({ wrong: [], error: null });
    expect(during - before).toBeLessThan(20 * 2 ** 20);
    expect((await heap()) - before).toBeLessThan(4 * 2 ** 20);
  }, 80_000);

  it("is given back by sessions that have ended", async () => {
    await using trellis = await startTrellis();
    let produced: Produced | undefined;
    await trellis.service(ticksService, (service) => {
      produced = tickProducers(service);
    });
    const client = await trellis.client(ticksApp);
    const round = async (sessions: number) => {
      for (let at = 0; at < sessions; at += 100) {
        const streams = Array.from({ length: 100 }, () => client.feed.ticks.quiet());
        await Promise.all(streams.map((stream) => stream.next()));
        await Promise.all(streams.map((stream) => stream.return()));
      }
      await eventually(() => expect(produced?.running).toBe(0));
    };
    await round(500);
    const before = await heap();
    await round(count(10_000, 3_000));
    expect((await heap()) - before).toBeLessThan(2 * 2 ** 20);
  }, 80_000);
});
