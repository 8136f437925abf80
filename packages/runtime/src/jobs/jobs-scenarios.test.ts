import { eventually, startFaultProxy } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { JobsChild } from "../../../../tests/chaos/jobs/jobs-child.ts";
import { deferred } from "../lifecycle/deferred.ts";
import { type JobsBed, type Replica, startJobs } from "./jobs.test-kit.ts";
import { RetryJobError } from "./retry-job-error.ts";

let bed: JobsBed;
const children: JobsChild[] = [];
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await bed.reset();
});
afterAll(() => bed[Symbol.asyncDispose]());

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function child(queue: string): Promise<JobsChild> {
  const made = new JobsChild(bed.nats.url, bed.binding, { queue });
  children.push(made);
  await made.line("ready");
  return made;
}

describe("what others met", () => {
  it("a last attempt whose failure cannot be recorded for a while: the job is dead, its key goes on (J13)", async () => {
    const down = deferred();
    await bed.worker(({ keyed }) =>
      keyed.handle(async ({ job }) => {
        if (job.payload.n === 2) return { n: 2 };
        if (job.tries === 3) {
          await bed.nats.kill();
          down.resolve();
        }
        throw new RetryJobError();
      }),
    );
    const { jobs } = await bed.replica();
    const failing = await jobs.keyed.create({ n: 1, site: "a" }).orThrow();
    const next = await jobs.keyed.create({ n: 2, site: "a" }).orThrow();
    await down.promise;
    await pause(300);
    await bed.restart();
    expect((await failing.wait({ timeout: "20s" }).orThrow()).state).toBe("dead");
    expect((await next.wait({ timeout: "20s" }).orThrow()).state).toBe("completed");
    await bed.settled("keyed");
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  }, 60_000);

  it("a worker that does not know a queue leaves its jobs alone (J17)", async () => {
    const first = await child("plain");
    const { jobs } = await bed.replica();
    const foreign = await jobs.other.create({ n: 5 }).orThrow();
    const hanging = await jobs.plain.create({ n: 1, pad: "hang" }).orThrow();
    await first.line(`handling ${hanging.id}`);
    await first.kill();
    // Recovers what the first left of its own queue.
    await bed.worker(({ plain }) => plain.handle(() => ({ n: 1 })));
    await hanging.wait({ timeout: "10s" }).orThrow();
    await bed.settled("plain");
    expect(await foreign.get().orThrow()).toMatchObject({ state: "pending", tries: 0 });
    expect((await bed.events("other", foreign.id)).map(({ eventType }) => eventType)).toEqual(["created"]);
    await bed.worker(({ other }) => other.handle(({ job }) => ({ n: job.payload.n })));
    expect((await foreign.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 5 });
  });

  it("a lost job is taken up behind hundreds that only look old, which are left alone (J18)", async () => {
    const lost = await child("keyed");
    const { jobs } = await bed.replica();
    const last = await jobs.keyed.create({ n: 0, site: "lost", pad: "hang" }).orThrow();
    await lost.line(`handling ${last.id}`);
    await lost.kill();
    const next = await jobs.keyed.create({ n: 1, site: "lost" }).orThrow();
    const runs = new Map<string, number>();
    const over = deferred();
    await bed.worker(({ keyed }) =>
      keyed.handle(
        async ({ job }) => {
          runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
          if (job.payload.site !== "lost") await over.promise;
          return { n: 1 };
        },
        { concurrency: 300 },
      ),
    );
    const many = Array.from({ length: 250 }, (_, n) => ({ n, site: `healthy ${n}` }));
    const healthy = (await jobs.keyed.createMany(many).orThrow()).map((made) => made.orThrow());
    await eventually(() => runs.size === healthy.length, { timeout: 20_000 });
    expect((await next.wait({ timeout: "20s" }).orThrow()).state).toBe("completed");
    // Longer than a lease and a key's time-to-live: they are old, and alive.
    await pause(2_500);
    over.resolve();
    for (const ref of healthy) expect((await ref.wait({ timeout: "20s" }).orThrow()).tries).toBe(1);
    for (const ref of healthy) expect(runs.get(ref.id)).toBe(1);
  }, 60_000);

  it("a broker that answers nothing for a while stops no sweep for good, and what wakes late changes nothing (J22)", async () => {
    await using proxy = await startFaultProxy({ target: bed.nats.url });
    const servers = `127.0.0.1:${proxy.port}`;
    const lost = await child("keyed");
    const { jobs } = await bed.replica();
    const hanging = await jobs.keyed.create({ n: 1, site: "a", pad: "hang" }).orThrow();
    await lost.line(`handling ${hanging.id}`);
    await bed.worker(({ keyed }) => keyed.handle(() => ({ n: 2 })), { servers, timeoutMs: 500 });
    const next = await jobs.keyed.create({ n: 2, site: "a" }).orThrow();
    await lost.kill();
    // The only one that sweeps hears nothing, in the middle of whatever it does.
    proxy.blackhole(true);
    await pause(2_000);
    expect((await next.get().orThrow()).state).toBe("pending");
    proxy.blackhole(false);
    expect((await next.wait({ timeout: "20s" }).orThrow()).state).toBe("completed");
    // Its own job was there first, or the next of the key was.
    expect(["completed", "stale"]).toContain((await hanging.wait({ timeout: "20s" }).orThrow()).state);
    await bed.settled("keyed");
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  }, 60_000);

  it("two that recover the same jobs at once take each of them once (J31)", async () => {
    const lost = await child("keyed");
    const { jobs } = await bed.replica();
    const sites = Array.from({ length: 4 }, (_, n) => `site ${n}`);
    const held = await Promise.all(
      sites.map((site) => jobs.keyed.create({ n: 1, site, pad: "hang" }).orThrow()),
    );
    for (const { id } of held) await lost.line(`handling ${id}`);
    const waiting = await Promise.all(sites.map((site) => jobs.keyed.create({ n: 2, site }).orThrow()));
    const inside = new Map<string, number>();
    let most = 0;
    const handle: Parameters<Replica["jobs"]["keyed"]["handle"]>[0] = async ({ job }) => {
      // One that has lost its key comes again to clean up, with its signal aborted.
      if (job.signal.aborted) return { n: 0 };
      const site = String(job.payload.site);
      inside.set(site, (inside.get(site) ?? 0) + 1);
      most = Math.max(most, inside.get(site) ?? 0);
      await pause(20);
      inside.set(site, (inside.get(site) ?? 0) - 1);
      return { n: 3 };
    };
    await Promise.all([0, 1].map(() => bed.worker(({ keyed }) => keyed.handle(handle, { concurrency: 8 }))));
    await lost.kill();
    // Recovery goes on over a restart of the broker: it is no single shot.
    await pause(700);
    await bed.restart({ kill: true });
    for (const ref of waiting) expect((await ref.wait({ timeout: "30s" }).orThrow()).state).toBe("completed");
    for (const ref of held)
      expect(["stale", "completed"]).toContain((await ref.wait({ timeout: "30s" }).orThrow()).state);
    await bed.settled("keyed");
    expect(most).toBe(1);
    for (const { id } of waiting) {
      const ends = (await bed.events("keyed", id)).filter(({ eventType }) => eventType === "completed");
      expect(ends).toHaveLength(1);
    }
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  }, 90_000);

  it("a limit that is never reached costs next to nothing of the throughput (J40)", async () => {
    const handle = () => pause(1_000).then(() => ({ n: 1 }));
    for (let replica = 0; replica < 4; replica += 1)
      await bed.worker(({ wide, plain }) => {
        wide.handle(handle, { concurrency: 10 });
        plain.handle(handle, { concurrency: 10 });
      });
    const { jobs } = await bed.replica();
    const payloads = Array.from({ length: 120 }, (_, n) => ({ n, site: "one" }));
    const time = async (queue: "plain" | "wide") => {
      const started = performance.now();
      const made = (await jobs[queue].createMany(payloads).orThrow()).map((each) => each.orThrow());
      await Promise.all(made.map((ref) => ref.wait({ timeout: "60s" }).orThrow()));
      return performance.now() - started;
    };
    const unlimited = await time("plain");
    const limited = await time("wide");
    expect(unlimited / limited).toBeGreaterThan(0.9);
  }, 120_000);
});
