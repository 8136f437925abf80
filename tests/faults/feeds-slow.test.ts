import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { type Produced, Reader, tickProducers, ticksApp, ticksService } from "./feeds-kit.ts";
import { count, heap, pause, timed } from "./kit.ts";

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
    expect(produced?.items).toBeLessThan(200_000 + 2 * 66 * 128);
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
