import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type EventBed, order, startEvents } from "./events.test-kit.ts";

let bed: EventBed;
beforeAll(async () => {
  bed = await startEvents();
});
afterAll(() => bed[Symbol.asyncDispose]());
afterEach(() => bed.reset());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Publishes `n` = 0, 1, 2, ... of each region, one after the other. */
async function publishInOrder(regions: readonly string[], count: number): Promise<void> {
  const { event } = await bed.shop();
  for (let n = 0; n < count; n += 1) {
    for (const region of regions) {
      const kind = n % 2 === 0 ? event.order.placed : event.order.shipped;
      await kind.publish(order({ region, n })).orThrow();
    }
  }
}

async function keyed(
  binding: Awaited<ReturnType<EventBed["provision"]>>,
  handle: (region: string, n: number, attempt: number) => unknown,
) {
  return bed.replica({ keyed: binding }, (event) => {
    for (const listen of [event.order.placed, event.order.shipped]) {
      listen.listen(
        ({ event: { payload }, context }) =>
          handle(payload.region, payload.n ?? -1, context.attempt) as never,
        { group: "keyed" },
      );
    }
  });
}

it("handles events of equal params one after another, those of others beside them", async () => {
  const binding = await bed.provision("keyed");
  const done: [string, number][] = [];
  const running = new Map<string, number>();
  let most = 0;
  await keyed(binding, async (region, n) => {
    running.set(region, (running.get(region) ?? 0) + 1);
    expect(running.get(region)).toBe(1);
    most = Math.max(most, [...running.values()].filter((count) => count > 0).length);
    await pause(5);
    running.set(region, 0);
    done.push([region, n]);
  });
  await publishInOrder(["a", "b", "c"], 20);
  await eventually(() => expect(done).toHaveLength(60), { timeout: 10_000 });
  for (const region of ["a", "b", "c"]) {
    expect(done.filter(([each]) => each === region).map(([, n]) => n)).toEqual(
      Array.from({ length: 20 }, (_, n) => n),
    );
  }
  expect(most).toBeGreaterThan(1);
});

it("a failing event holds its key, also over its retries and into the dead letters, and no other key", async () => {
  const binding = await bed.provision("keyed");
  const done: string[] = [];
  await keyed(binding, (region, n, attempt) => {
    if (region === "bad" && n === 1 && attempt < 3) throw new Error("not yet");
    if (region === "bad" && n === 3) throw new Error("never");
    done.push(`${region}${n}`);
  });
  await publishInOrder(["bad", "good"], 6);
  await eventually(() => expect(done).toHaveLength(11), { timeout: 10_000 });
  expect(done.filter((each) => each.startsWith("bad"))).toEqual(["bad0", "bad1", "bad2", "bad4", "bad5"]);
  expect(done.filter((each) => each.startsWith("good"))).toEqual(
    Array.from({ length: 6 }, (_, n) => `good${n}`),
  );
  expect(done.indexOf("good2")).toBeLessThan(done.indexOf("bad2"));
  const [letter] = await bed.lettersOnce(1);
  expect(letter).toMatchObject({ reason: "exhausted", attempts: 3 });
});

it("keeps the order of keys over replicas, also when the one at work stops or dies", async () => {
  const binding = await bed.provision("keyed", { ack_wait: 1_000_000_000, priority_timeout: 1_000_000_000 });
  const done: number[] = [];
  const first = new Set<number>();
  const by = [0, 0, 0];
  const start = (replica: number) =>
    keyed(binding, async (_region, n) => {
      if (!first.has(n)) done.push(n);
      first.add(n);
      by[replica] = (by[replica] ?? 0) + 1;
      await pause(10);
    });
  const [one, two] = [await start(0), await start(1)];
  const publishing = publishInOrder(["a"], 120);
  await eventually(() => expect(done.length).toBeGreaterThan(20), { timeout: 10_000 });
  const active = (by[0] ?? 0) > 0 ? one : two;
  const other = active === one ? two : one;
  expect(Math.min(by[0] ?? 0, by[1] ?? 0)).toBe(0);
  await active.stop();
  await active.link.close();
  await eventually(() => expect(done.length).toBeGreaterThan(60), { timeout: 15_000 });
  await start(2);
  await other.link.close(); // without a word, as when it is killed
  await publishing;
  await eventually(() => expect(first.size).toBe(120), { timeout: 20_000 });
  expect(done).toEqual(Array.from({ length: 120 }, (_, n) => n));
}, 60_000);
