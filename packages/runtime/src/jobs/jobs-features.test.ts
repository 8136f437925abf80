import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deferred } from "../lifecycle/deferred.ts";
import type { JobRef } from "./job-ref.ts";
import { type Jobs, type JobsBed, plant, startJobs, testSurface } from "./jobs.test-kit.ts";

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(() => bed.reset());
afterAll(() => bed[Symbol.asyncDispose]());

describe("priorities", () => {
  it("go first, and the low ones do not starve", async () => {
    const { jobs } = await bed.replica();
    const order: string[] = [];
    const refs: JobRef[] = [];
    for (const priority of ["low", "normal", "high"] as const)
      for (let n = 0; n < 40; n += 1)
        refs.push(await jobs.plain.create({ n, pad: priority }, { priority }).orThrow());
    await bed.worker(({ plain }) =>
      plain.handle(async ({ job }) => {
        order.push(job.payload.pad ?? "");
        await new Promise((resolve) => setTimeout(resolve, 4));
        return { n: 1 };
      }),
    );
    for (const ref of refs) await ref.wait({ timeout: "20s" }).orThrow();
    const mean = (priority: string) => {
      const places = order.flatMap((each, place) => (each === priority ? [place] : []));
      return places.reduce((a, b) => a + b, 0) / places.length;
    };
    expect(mean("high")).toBeLessThan(mean("normal"));
    expect(mean("normal")).toBeLessThan(mean("low"));
    expect(order.indexOf("low")).toBeLessThan(60);
  });
});

describe("a pause", () => {
  it("of a queue's consumers holds its jobs back, and nothing is lost or failing", async () => {
    const ran: number[] = [];
    const { jobs, surface } = await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        ran.push(job.payload.n);
        return { n: 1 };
      }),
    );
    const { stream, queues } = bed.binding;
    const consumers = Object.values(queues["plain"]?.work ?? {});
    for (const consumer of consumers)
      await bed.manager.consumers.pause(stream, consumer, new Date(Date.now() + 60_000));
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    const short = await ref.wait({ timeout: "1500ms" });
    expect(short.isErr() && short.error.type).toBe("TimeoutError");
    expect(ran).toEqual([]);
    expect(surface.health().status).toBe("ok");
    for (const consumer of consumers) await bed.manager.consumers.resume(stream, consumer);
    expect((await ref.wait({ timeout: "10s" }).orThrow()).state).toBe("completed");
  });
});

describe("rate limits", () => {
  it("hold over two replicas, in any span", async () => {
    const starts: number[] = [];
    const handle = () => {
      starts.push(performance.now());
      return { n: 1 };
    };
    for (let replica = 0; replica < 2; replica += 1)
      await bed.worker(({ limited }) => limited.handle(handle, { concurrency: 4 }));
    const { jobs } = await bed.replica();
    const refs = (await jobs.limited.createMany(Array.from({ length: 14 }, (_, n) => ({ n }))).orThrow()).map(
      (each) => each.orThrow(),
    );
    for (const ref of refs) await ref.wait({ timeout: "20s" }).orThrow();
    starts.sort((a, b) => a - b);
    for (let index = 5; index < starts.length; index += 1)
      expect((starts[index] ?? 0) - (starts[index - 5] ?? 0)).toBeGreaterThan(980);
  });

  it("of a key leave other keys alone", async () => {
    const starts: { site: unknown; at: number }[] = [];
    const { jobs } = await bed.worker(({ perKey }) =>
      perKey.handle(
        ({ job }) => {
          starts.push({ site: job.payload.site, at: performance.now() });
          return { n: 1 };
        },
        { concurrency: 4 },
      ),
    );
    const began = performance.now();
    const refs: JobRef[] = [];
    for (let n = 0; n < 4; n += 1) refs.push(await jobs.perKey.create({ n, site: "busy" }).orThrow());
    const other = await jobs.perKey.create({ n: 9, site: "quiet" }).orThrow();
    await other.wait({ timeout: "10s" }).orThrow();
    expect(performance.now() - began).toBeLessThan(1_400);
    for (const ref of refs) await ref.wait({ timeout: "20s" }).orThrow();
    const busy = starts.filter(({ site }) => site === "busy").map(({ at }) => at);
    expect((busy[2] ?? 0) - (busy[0] ?? 0)).toBeGreaterThan(1_400);
  });
});

describe("schedules", () => {
  it("make one job a slot, whatever the number of replicas and their clocks", async () => {
    const slots: string[] = [];
    const skewed = (by: number) => ({ now: () => Date.now() + by, monotonic: () => performance.now() });
    const handle = (jobs: Jobs) =>
      jobs.ticking.handle(({ job }) => {
        slots.push(job.id);
        return { n: 1 };
      });
    for (const by of [-300_000, 0, 300_000]) await bed.worker(handle, { clock: skewed(by) });
    await eventually(() => slots.length >= 3, { timeout: 8_000 });
    expect(new Set(slots).size).toBe(slots.length);
    const { jobs } = await bed.replica();
    const first = await jobs.ticking
      .ref(slots[0] ?? "")
      .get()
      .orThrow();
    expect(first).toMatchObject({ payload: { n: 7 }, trigger: { kind: "schedule", name: "second" } });
    const seconds = slots.length;
    expect(seconds).toBeLessThan(9);
  });
});

describe("parents and children", () => {
  it("wait for each other without taking a place, find each other again, and end however the child ended", async () => {
    const { jobs } = await bed.worker(({ plain, other }) => {
      // One place, and the children are of the same queue: it must be free while the parent waits.
      plain.handle(async ({ job, client }) => {
        if (job.payload.n > 0) return { n: job.payload.n };
        const inner = (client.origin === undefined ? {} : jobs) as Jobs;
        await job.children.create(inner.plain, { n: 1 }, { step: "one" }).orThrow();
        await job.children.create(inner.plain, { n: 2 }, { step: "two" }).orThrow();
        await job.children.create(inner.plain, { n: 2 }, { step: "two" }).orThrow();
        await job.children.create(inner.other, { n: 3 }, { step: "three" }).orThrow();
        const ends = await job.children.wait().orThrow();
        return { n: new Set(ends.map(({ id }) => id)).size, pad: ends.map(({ state }) => state).join() };
      });
      other.handle(() => {
        throw new Error("no");
      });
    });
    const parent = await jobs.plain.create({ n: 0 }).orThrow();
    const end = await parent.wait({ timeout: "20s" }).orThrow();
    expect(end.result).toEqual({ n: 3, pad: "completed,completed,completed,failed" });
  });
});

describe("permissions", () => {
  it("end at the deployment's own jobs", async () => {
    const { link } = await bed.replica();
    const { stream, secret } = bed.binding;
    const other = `jobs.v1.plant1.plain.${"0".repeat(32)}`;
    for (const subject of [
      `${other}.j1.completed`,
      `jobs.v1.plant2.plain.${secret}.j1.completed`,
      `jobs.v1.plant1.plain.${secret}.j1.completed.high`,
      `$JS.API.STREAM.PURGE.${stream}`,
      `$JS.API.STREAM.MSG.DELETE.${stream}`,
      `$JS.API.CONSUMER.CREATE.${stream}.x`,
      `$JS.API.CONSUMER.DELETE.${stream}.plain_normal`,
      `$JS.API.CONSUMER.PAUSE.${stream}.plain_normal`,
      "$JS.API.STREAM.INFO.KV_x",
    ])
      await expect(link.nats.request(subject, "{}", { timeout: 2_000 }), subject).rejects.toThrow(
        /permissions violation/i,
      );
    const heard = new Promise<unknown>((resolve) =>
      link.nats.subscribe(`joblive.v1.plant2.plain.${secret}.*.*`, { callback: (error) => resolve(error) }),
    );
    expect(String(await heard)).toMatch(/permissions violation/i);
  });
});

describe("registration", () => {
  it("refuses a second handler, a late one, and a concurrency that is none, each by name", async () => {
    const { jobs } = await bed.replica();
    jobs.plain.handle(() => ({ n: 1 }));
    expect(() => jobs.plain.handle(() => ({ n: 1 }))).toThrow(/"plain" has a handler/);
    for (const concurrency of [0, -1, 1.5, Number.NaN])
      expect(() => jobs.other.handle(() => ({ n: 1 }), { concurrency })).toThrow(/"other"/);
    const { jobs: late } = await bed.worker(({ plain }) => plain.handle(() => ({ n: 1 })));
    expect(() => late.other.handle(() => ({ n: 1 }))).toThrow(/other/);
  });

  it("says which queue is not bound, and calls say so too", async () => {
    const { link } = await bed.replica();
    const surface = testSurface(link, undefined, { inbox: "_INBOX.none" });
    const jobs = surface.facade(undefined) as Jobs;
    const made = await jobs.plain.create({ n: 1 });
    expect(made.isErr() && made.error).toMatchObject({ type: "UnavailableError", reason: "not_bound" });
    jobs.plain.handle(() => ({ n: 1 }));
    await expect(surface.start()).rejects.toMatchObject({ code: "trellis.bootstrap.binding_missing" });
    await testSurface(link, undefined, { inbox: "_INBOX.none", participant: plant }).start();
  });
});

describe("memory", () => {
  it("holds nothing of jobs that are over", async () => {
    const done = deferred();
    let count = 0;
    const total = 6_000;
    const { jobs, link, surface } = await bed.worker(({ plain }) =>
      plain.handle(
        ({ job }) => {
          count += 1;
          if (count === total) done.resolve();
          return { n: job.payload.n };
        },
        { concurrency: 50 },
      ),
    );
    for (let made = 0; made < total; made += 1_000)
      await jobs.plain.createMany(Array.from({ length: 1_000 }, (_, n) => ({ n }))).orThrow();
    await done.promise;
    await bed.settled("plain");
    expect(surface.running).toBe(0);
    expect(link.requests.size).toBe(0);
    expect(link.answers.size).toBe(0);
    expect(link.wheel.size).toBe(0);
  });
});
