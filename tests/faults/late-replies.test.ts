import { eventually } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { capturing, count, heap, pause, startWork, watchUnhandled } from "./kit.ts";

/** Subscriptions of a broker connection, as the client counts them. */
function subscriptions(nats: object | undefined): number {
  const { protocol } = nats as { protocol: { subscriptions: { subs: Map<number, unknown> } } };
  return protocol.subscriptions.subs.size;
}

describe("answers that nobody waits for any more", () => {
  it("after thousands of timeouts: normal calls work, nothing is kept, no subscription was added", async () => {
    using unhandled = watchUnhandled();
    const wire = capturing();
    await using working = await startWork({
      client: { platform: wire.platform },
      service: { runtime: { admission: { maxCalls: 20_000 } } },
      setup({ handle }) {
        // Ignores its signal: every answer comes, late.
        handle.rpc.work.slow(async ({ input }) => {
          await pause(input.ms);
          return { n: input.n, by: "late" };
        });
        handle.rpc.work.count(({ input }) => ({ n: input.n, by: "quick" }));
      },
    });
    const { work } = working.client.rpc;
    expect((await work.count({ n: 0 })).isOk()).toBe(true);
    const before = subscriptions(wire.dialled[0]);
    const round = async () => {
      const calls = Array.from({ length: 1_000 }, (_, n) => work.slow({ n, ms: 300 }, { timeout: 100 }));
      for (const call of calls) {
        const result = await call;
        expect(result.isErr() && result.error.type).toBe("TimeoutError");
      }
      await pause(250);
    };
    await round();
    const baseline = await heap();
    for (let n = 0; n < count(10, 3); n += 1) await round();
    const normal = Array.from({ length: 1_000 }, (_, n) => work.count({ n }, { timeout: 5_000 }));
    for (const [n, call] of normal.entries()) expect((await call).orThrow().n).toBe(n);
    expect(subscriptions(wire.dialled[0])).toBe(before);
    expect((await heap()) - baseline).toBeLessThan(4_000_000);
    expect(unhandled.seen).toEqual([]);
  });

  it("after calls that were aborted between send and answer, or before they were sent", async () => {
    using unhandled = watchUnhandled();
    const wire = capturing();
    await using working = await startWork({ client: { platform: wire.platform } });
    const { client, done } = working;
    const before = subscriptions(wire.dialled[0]);
    const calls = Array.from({ length: 500 }, (_, n) => {
      const leaving = new AbortController();
      const call = client.rpc.work.slow({ n, ms: 4_000 }, { signal: leaving.signal });
      if (n % 3 === 0) leaving.abort();
      else if (n % 3 === 1) queueMicrotask(() => leaving.abort());
      else setTimeout(() => leaving.abort(), n % 20);
      return call;
    });
    for (const call of calls) {
      const result = await call;
      expect(result.isErr() && result.error.type).toBe("CancelledError");
    }
    // What was begun all the same was told to stop.
    await eventually(() => done.aborted.length === done.begun.length, { timeout: 2_000 });
    expect(done.finished).toEqual([]);
    expect((await client.rpc.work.count({ n: 1 })).isOk()).toBe(true);
    expect(subscriptions(wire.dialled[0])).toBe(before);
    expect(unhandled.seen).toEqual([]);
  });

  it("many calls with one signal are no leak to the platform", async () => {
    const warnings: string[] = [];
    const warned = ({ name }: Error) => void warnings.push(name);
    process.on("warning", warned);
    await using working = await startWork();
    const leaving = new AbortController();
    const { signal } = leaving;
    const calls = Array.from({ length: 50 }, (_, n) =>
      working.client.rpc.work.slow({ n, ms: 5_000 }, { signal }),
    );
    await eventually(() => working.done.begun.length === 50);
    leaving.abort();
    for (const call of calls) expect((await call).isErr()).toBe(true);
    await eventually(() => working.done.aborted.length === 50);
    process.off("warning", warned);
    expect(warnings).toEqual([]);
  });

  it("one signal for a thousand calls collects no listeners", async () => {
    await using working = await startWork();
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    for (let n = 0; n < 1_000; n += 1) await working.client.rpc.work.count({ n }, { signal }).orThrow();
    expect(listeners).toBe(0);
  });
});

describe("thousands of short calls, one after the other", () => {
  it("leave the heap where it was", async () => {
    await using working = await startWork();
    const { work } = working.client.rpc;
    const run = async (calls: number) => {
      for (let n = 0; n < calls; n += 1) {
        const result = n % 10 === 0 ? await work.slow({ n, ms: 0 }) : await work.count({ n });
        if (result.isErr()) throw result.error;
        working.done.begun.length = working.done.finished.length = 0;
      }
    };
    await run(2_000);
    const baseline = await heap();
    await run(count(100_000, 4_000));
    expect((await heap()) - baseline).toBeLessThan(2_000_000);
  });
});
