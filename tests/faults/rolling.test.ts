import { startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { workApp, workService } from "./contract.ts";
import { count, pause, plainHandlers, type WorkService, watchUnhandled } from "./kit.ts";

/** Calls at a steady rate until it is ended; keeps the failures. */
function steadyLoad(
  call: (n: number) => PromiseLike<{ isErr(): boolean; error?: unknown }>,
  perSecond: number,
) {
  const failures: unknown[] = [];
  const open = new Set<Promise<void>>();
  let n = 0;
  const one = async (number: number) => {
    const result = await call(number);
    if (result.isErr()) failures.push(result.error);
  };
  const started = performance.now();
  const timer = setInterval(() => {
    // Catches up with what a busy machine has missed.
    for (const due = ((performance.now() - started) / 1_000) * perSecond; n < due; n += 1) {
      const running = one(n).finally(() => open.delete(running));
      open.add(running);
    }
  }, 5);
  return {
    failures,
    async end(): Promise<number> {
      clearInterval(timer);
      await Promise.all(open);
      return n;
    },
  };
}

describe("two replicas", () => {
  it("share the load, and a rolling restart under load loses and repeats nothing", async () => {
    using unhandled = watchUnhandled();
    await using trellis = await startTrellis();
    const handled = new Map<number, string[]>();
    let born = 0;
    const replica = () => {
      const by = `replica ${(born += 1)}`;
      return trellis.service(workService, (service: WorkService) => {
        plainHandlers(service, undefined, by);
        service.use((call, next) => {
          const { n } = call.input as { n: number };
          handled.set(n, [...(handled.get(n) ?? []), by]);
          return next();
        });
      });
    };
    const replicas = [await replica(), await replica()];
    const client = await trellis.client(workApp);
    // None of the calls may run twice by contract: every one must find a handler exactly once.
    const load = steadyLoad(
      (n) =>
        n % 2 === 0 ? client.rpc.work.count({ n }) : client.rpc.work.slow({ n, ms: 30 + (n % 5) * 20 }),
      200,
    );
    await pause(700);
    for (let round = 0; round < count(10, 5); round += 1) {
      const next = await replica();
      await replicas.shift()?.stop();
      replicas.push(next);
      await pause(200);
    }
    await pause(500);
    const total = await load.end();
    expect(load.failures).toEqual([]);
    expect(handled.size).toBe(total);
    expect([...handled.values()].filter((by) => by.length !== 1)).toEqual([]);
    const shares = new Map<string, number>();
    for (const [by] of handled.values()) shares.set(by ?? "", (shares.get(by ?? "") ?? 0) + 1);
    expect(shares.size).toBe(born);
    // The first two served alone for a while, and then one after the other.
    for (const name of ["replica 1", "replica 2"]) expect(shares.get(name)).toBeGreaterThan(25);
    expect(unhandled.seen).toEqual([]);
  }, 60_000);

  it("share slow calls about evenly, and each is handled by one", async () => {
    await using trellis = await startTrellis();
    const by = [0, 0, 0];
    for (const index of by.keys())
      await trellis.service(workService, (service) => {
        plainHandlers(service);
        service.use((_, next) => {
          by[index] = (by[index] ?? 0) + 1;
          return next();
        });
      });
    const client = await trellis.client(workApp);
    const calls: PromiseLike<unknown>[] = [];
    for (let n = 0; n < 300; n += 1) {
      calls.push(client.rpc.work.slow({ n, ms: 20 }).orThrow());
      if (n % 5 === 0) await pause(1);
    }
    await Promise.all(calls);
    expect(by.reduce((sum, share) => sum + share)).toBe(300);
    for (const share of by) expect(share).toBeGreaterThan(40);
  });
});
