import { eventually, startFaultProxy, startTrellis, type TestTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { type Produced, Reader, through, tickProducers, ticksApp, ticksService } from "./feeds-kit.ts";
import { timed } from "./kit.ts";

async function provide(trellis: TestTrellis, by?: string): Promise<Produced> {
  let produced: Produced | undefined;
  await trellis.service(ticksService, (service) => {
    produced = tickProducers(service, by);
  });
  if (produced === undefined) throw new Error("no producers");
  return produced;
}

describe.concurrent("a consumer that is gone", () => {
  it("is noticed when it is killed: all its producers are free within seconds, and nobody else's", async () => {
    await using trellis = await startTrellis();
    const produced = await provide(trellis);
    const client = await trellis.client(ticksApp);
    const other = new Reader(client.feed.ticks.count({ perSecond: 50 }));
    await using lost = startChild(trellis, "feed-consumer", "200");
    await lost.line("item 10", 60_000);
    expect(produced.running).toBe(202);
    lost.kill("SIGKILL");
    await lost.exited;
    const { ms } = await timed(() => eventually(() => expect(produced.running).toBe(1), { timeout: 15_000 }));
    expect(ms).toBeLessThan(9_000);
    expect(new Set(produced.reasons)).toEqual(new Set(["caller_gone"]));
    const { last } = other;
    await eventually(() => expect(other.last).toBeGreaterThan(last + 20));
    expect(other).toMatchObject({ wrong: [], error: undefined });
  }, 150_000);

  it("stands still: its producers are free within 30 s, and it learns why when it goes on", async () => {
    await using trellis = await startTrellis();
    const produced = await provide(trellis);
    await using frozen = startChild(trellis, "feed-consumer", "20");
    await frozen.line("item 10", 60_000);
    frozen.kill("SIGSTOP");
    const { ms } = await timed(() => eventually(() => expect(produced.running).toBe(0), { timeout: 35_000 }));
    expect(ms).toBeLessThan(31_000);
    frozen.kill("SIGCONT");
    expect(await frozen.line("ended", 20_000)).toMatch(/^ended (delivery_gap|provider_lost|consumer_slow)$/);
  }, 150_000);

  it("is swallowed by the network: its producers are free within 30 s", async () => {
    await using trellis = await startTrellis();
    const produced = await provide(trellis);
    await using proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const client = await trellis.client(ticksApp, { platform: through(proxy.address) });
    const quiet = client.feed.ticks.quiet();
    await quiet.next();
    const reader = new Reader(client.feed.ticks.count({ perSecond: 20 }));
    await eventually(() => expect(reader.last).toBeGreaterThan(5));
    proxy.blackhole(true);
    const { ms } = await timed(() => eventually(() => expect(produced.running).toBe(0), { timeout: 35_000 }));
    expect(ms).toBeLessThan(31_000);
    // The consumer heard nothing either, and ends for a reason of its own.
    await eventually(() => expect(reader.error).toBeDefined(), { timeout: 10_000 });
    expect(reader.error).toMatchObject({ type: "FeedError", reason: "provider_lost" });
    await expect(quiet.next()).rejects.toMatchObject({ type: "FeedError", reason: "provider_lost" });
    proxy.blackhole(false);
  }, 150_000);
});

describe.concurrent("a provider that is gone", () => {
  it("is killed: its feeds end as provider_lost and go on at the other replica when opened again", async () => {
    await using trellis = await startTrellis();
    await using lost = startChild(trellis, "feed-provider", "child");
    await lost.line("ready", 60_000);
    const client = await trellis.client(ticksApp);
    const readers = Array.from({ length: 5 }, () => new Reader(client.feed.ticks.count({ perSecond: 50 })));
    const quiet = client.feed.ticks.quiet();
    expect((await quiet.next()).value).toBe("child");
    await eventually(() => expect(Math.min(...readers.map(({ last }) => last))).toBeGreaterThan(10));
    const survivor = await provide(trellis, "survivor");
    lost.kill("SIGKILL");
    const { ms } = await timed(() => Promise.all(readers.map(({ over }) => over)));
    expect(ms).toBeLessThan(9_000);
    for (const reader of readers)
      expect(reader).toMatchObject({ wrong: [], error: { type: "FeedError", reason: "provider_lost" } });
    await expect(quiet.next()).rejects.toMatchObject({ reason: "provider_lost" });
    expect((await client.feed.ticks.quiet().next()).value).toBe("survivor");
    expect(survivor.running).toBe(1);
  }, 150_000);

  it("stands still although the broker still has it: provider_lost within 30 s", async () => {
    await using trellis = await startTrellis();
    await using frozen = startChild(trellis, "feed-provider", "child");
    await frozen.line("ready", 60_000);
    const client = await trellis.client(ticksApp);
    const quiet = client.feed.ticks.quiet();
    await quiet.next();
    frozen.kill("SIGSTOP");
    const { ms } = await timed(() =>
      expect(quiet.next()).rejects.toMatchObject({ type: "FeedError", reason: "provider_lost" }),
    );
    expect(ms).toBeLessThan(30_000);
    frozen.kill("SIGCONT");
    // It learns at once that nobody reads any more.
    frozen.tell("stop");
    expect(await frozen.line("stopped", 20_000)).toBe("stopped 0");
  }, 150_000);

  it("stops in order: its consumers hear it at once, another replica takes the next sessions", async () => {
    await using trellis = await startTrellis();
    await using leaving = startChild(trellis, "feed-provider", "leaving");
    await leaving.line("ready", 60_000);
    const client = await trellis.client(ticksApp);
    const readers = Array.from({ length: 20 }, () => new Reader(client.feed.ticks.count({})));
    await eventually(() => expect(Math.min(...readers.map(({ last }) => last))).toBeGreaterThan(100));
    await provide(trellis, "staying");
    leaving.tell("stop");
    const { ms } = await timed(() => Promise.all(readers.map(({ over }) => over)));
    expect(ms).toBeLessThan(3_000);
    for (const reader of readers)
      expect(reader).toMatchObject({ wrong: [], error: { type: "FeedError", reason: "stopped" } });
    expect(await leaving.line("stopped", 20_000)).toBe("stopped 0");
    expect(await leaving.exited).toMatchObject({ code: 0 });
    expect((await client.feed.ticks.quiet().next()).value).toBe("staying");
  }, 150_000);
});

describe("two replicas", () => {
  it("share sessions; each has its own until it is left", async () => {
    await using trellis = await startTrellis();
    const all = { one: await provide(trellis, "one"), two: await provide(trellis, "two") };
    const client = await trellis.client(ticksApp);
    const streams = Array.from({ length: 100 }, () => client.feed.ticks.quiet());
    const by = await Promise.all(streams.map(async (stream) => (await stream.next()).value));
    const counts = { one: 0, two: 0 };
    for (const name of by) counts[name === "one" ? "one" : "two"] += 1;
    expect({ one: all.one.running, two: all.two.running }).toEqual(counts);
    expect(Math.min(counts.one, counts.two)).toBeGreaterThan(10);
    await Promise.all(streams.map((stream) => stream.return()));
    await eventually(() => expect(all.one.running + all.two.running).toBe(0), { timeout: 2_000 });
  }, 150_000);
});
