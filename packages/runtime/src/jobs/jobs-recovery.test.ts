import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { JobsChild } from "../../../../tests/chaos/jobs/jobs-child.ts";
import { deferred } from "../lifecycle/deferred.ts";
import { onAbort } from "../lifecycle/on-abort.ts";
import { type JobsBed, startJobs } from "./jobs.test-kit.ts";

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

async function child(queue: string): Promise<JobsChild> {
  const made = new JobsChild(bed.nats.url, bed.binding, { queue });
  children.push(made);
  await made.line("ready");
  return made;
}

describe("a worker that is lost", () => {
  it("loses its jobs to another, which counts the crash and no attempt of the handler", async () => {
    const first = await child("plain");
    const { jobs } = await bed.replica();
    const ref = await jobs.plain.create({ n: 1, pad: "hang" }).orThrow();
    await first.line(`handling ${ref.id}`);
    await eventually(async () => (await ref.get().orThrow()).state === "active");
    await first.kill();
    const tries: number[] = [];
    await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        tries.push(job.tries);
        return { n: 2 };
      }),
    );
    expect((await ref.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 2 });
    expect(tries).toEqual([2]);
    const started = (await bed.events("plain", ref.id)).filter(({ eventType }) => eventType === "started");
    expect(started.map(({ crashes = 0 }) => crashes)).toEqual([0, 1]);
  });

  it("is killed by a poisoned job at the most as often as the queue allows; then the job is dead", async () => {
    const { jobs } = await bed.replica();
    const ref = await jobs.fragile.create({ n: 1, pad: "poison" }).orThrow();
    let killed = 0;
    for (; killed < 6; killed += 1) {
      const worker = await child("fragile");
      await Promise.race([worker.exited, ref.wait({ timeout: "10s" }).orThrow()]);
      if ((await ref.get().orThrow()).state === "dead") break;
    }
    expect(await ref.get().orThrow()).toMatchObject({ state: "dead", lastError: { type: "Crashed" } });
    expect(killed).toBe(2);
  });

  it("gives its key to its own job again within the time-to-live, never before", async () => {
    const first = await child("strict");
    const { jobs } = await bed.replica();
    const ref = await jobs.strict.create({ n: 1, site: "a", pad: "hang" }).orThrow();
    await first.line(`handling ${ref.id}`);
    await first.kill();
    const killed = performance.now();
    let resumed = 0;
    await bed.worker(({ strict }) =>
      strict.handle(() => {
        resumed = performance.now();
        return { n: 2 };
      }),
    );
    expect((await ref.wait({ timeout: "15s" }).orThrow()).state).toBe("completed");
    expect(resumed - killed).toBeGreaterThan(1_000);
    await bed.settled("strict");
    await eventually(async () => (await bed.keyRecords("strict")).length === 0);
    expect((await jobs.strict.create({ n: 2, site: "a" }).orThrow()).id).toBeDefined();
  });

  it("gives its key to the next that waits; its own job comes again to clean up, and is stale", async () => {
    const first = await child("keyed");
    const { jobs } = await bed.replica();
    const lost = await jobs.keyed.create({ n: 1, site: "a", pad: "hang" }).orThrow();
    await first.line(`handling ${lost.id}`);
    const next = await jobs.keyed.create({ n: 2, site: "a" }).orThrow();
    await first.kill();
    const reasons: unknown[] = [];
    await bed.worker(({ keyed }) =>
      keyed.handle(({ job }) => {
        reasons.push(job.signal.aborted ? job.signal.reason.reason : undefined);
        return { n: job.payload.n };
      }),
    );
    expect((await next.wait({ timeout: "15s" }).orThrow()).state).toBe("completed");
    expect((await lost.wait({ timeout: "15s" }).orThrow()).state).toBe("stale");
    expect(new Set(reasons)).toEqual(new Set(["stale-attempt", undefined]));
    await bed.settled("keyed");
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  });

  it("that only stood still loses its job, and what it says afterwards is ignored", async () => {
    const blocked = await child("plain");
    const { jobs } = await bed.replica();
    const ref = await jobs.plain.create({ n: 1, pad: "block" }).orThrow();
    await blocked.line(`handling ${ref.id}`);
    const { link } = await bed.worker(({ plain }) => plain.handle(() => ({ n: 2 })));
    expect((await ref.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 2 });
    await eventually(
      async () =>
        (await bed.events("plain", ref.id)).some(({ eventType }) => eventType === "staleCompletionIgnored"),
      { timeout: 10_000 },
    );
    expect((await ref.get().orThrow()).result).toEqual({ n: 2 });
    expect(link.isClosed).toBe(false);
    await bed.settled("plain");
  });

  it("that is stopped from outside and goes on later is told that it has lost its job", async () => {
    const frozen = await child("plain");
    const { jobs } = await bed.replica();
    const ref = await jobs.plain.create({ n: 1, pad: "hang" }).orThrow();
    await frozen.line(`handling ${ref.id}`);
    await eventually(async () => (await ref.get().orThrow()).state === "active");
    frozen.signal("SIGSTOP");
    await bed.worker(({ plain }) => plain.handle(() => ({ n: 2 })));
    expect((await ref.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 2 });
    frozen.signal("SIGCONT");
  });
});

describe("a lease", () => {
  it("is kept for as long as the handler runs: never a second run beside it", async () => {
    let runs = 0;
    const handle = async () => {
      runs += 1;
      await new Promise((resolve) => setTimeout(resolve, 3_500));
      return { n: 1 };
    };
    for (let replica = 0; replica < 2; replica += 1) await bed.worker(({ plain }) => plain.handle(handle));
    const { jobs } = await bed.replica();
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    expect((await ref.wait({ timeout: "15s" }).orThrow()).state).toBe("completed");
    await bed.settled("plain");
    expect(runs).toBe(1);
  });

  it("of a key that alone cannot be renewed is given on; the holder is told, and its outcome is not recorded", async () => {
    const reasons: unknown[] = [];
    const gate = deferred();
    const holder = await bed.worker(({ keyed }) =>
      keyed.handle(async ({ job }) => {
        if (job.payload.n !== 1 || job.signal.aborted) return { n: job.payload.n };
        gate.resolve();
        await new Promise<void>((resolve) => onAbort(job.signal, () => resolve()));
        reasons.push(job.signal.reason.reason);
        return { n: 1 };
      }),
    );
    const first = await holder.jobs.keyed.create({ n: 1, site: "a" }).orThrow();
    await gate.promise;
    const { jobs } = await bed.worker(({ keyed }) => keyed.handle(({ job }) => ({ n: job.payload.n })));
    const { broker } = holder.link;
    const publishWith = broker.publishWith.bind(broker);
    broker.publishWith = (subject, payload, options) =>
      subject.startsWith("$KV") ? true : publishWith(subject, payload, options);
    const next = await jobs.keyed.create({ n: 2, site: "a" }).orThrow();
    expect((await next.wait({ timeout: "15s" }).orThrow()).state).toBe("completed");
    const end = await jobs.keyed.ref(first.id).wait({ timeout: "15s" }).orThrow();
    expect(end.state).toBe("stale");
    expect(reasons).toEqual(["lost-lease"]);
  });
});

describe("a wait", () => {
  it("for a job that is removed meanwhile ends", async () => {
    const { jobs } = await bed.replica();
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    const waiting = ref.wait({ timeout: "20s" });
    const { transitions } = bed.subjects("plain");
    await bed.manager.streams.purge(bed.binding.stream, { filter: `${transitions}.${ref.id}.>` });
    const ended = await waiting;
    expect(ended.isErr() && ended.error.type).toBe("NotFoundError");
  });
});

describe("a broker that is lost", () => {
  it("and comes back, finds workers and makers that go on by themselves; a job runs on meanwhile", async () => {
    const began = deferred();
    const gate = deferred();
    const { jobs, surface } = await bed.worker(({ plain }) =>
      plain.handle(async ({ job }) => {
        if (job.payload.n === 1) {
          began.resolve();
          await gate.promise;
        }
        return { n: job.payload.n };
      }),
    );
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    await began.promise;
    const waiting = ref.wait({ timeout: "30s" });
    const restarted = bed.restart({ kill: true });
    gate.resolve();
    await restarted;
    expect((await waiting.orThrow()).state).toBe("completed");
    const next = await jobs.plain.create({ n: 2 }).orThrow();
    expect((await next.wait({ timeout: "15s" }).orThrow()).result).toEqual({ n: 2 });
    await eventually(() => surface.health().status === "ok", { timeout: 10_000 });
  });
});

describe("a stop", () => {
  it("lets what has begun come to its end, and hands on the rest without an attempt", async () => {
    const gate = deferred();
    const began = deferred();
    const first = await bed.worker(({ plain }) =>
      plain.handle(async () => {
        began.resolve();
        await gate.promise;
        return { n: 1 };
      }),
    );
    const refs = (await first.jobs.plain.createMany([{ n: 1 }, { n: 2 }, { n: 3 }]).orThrow()).map((each) =>
      each.orThrow(),
    );
    await began.promise;
    const other = await bed.replica();
    const stopping = first.surface.stop((await import("../lifecycle/deadline.ts")).Deadline.after(5_000));
    gate.resolve();
    await stopping;
    expect(first.surface.running).toBe(0);
    const tries: number[] = [];
    await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        tries.push(job.tries);
        return { n: 2 };
      }),
    );
    for (const ref of refs)
      expect((await other.jobs.plain.ref(ref.id).wait({ timeout: "10s" }).orThrow()).state).toBe("completed");
    expect(tries).toHaveLength(2);
  });

  it("hands back at once what does not heed its signal, with its key, and has lost no attempt", async () => {
    const began = deferred<string>();
    const stubborn = await bed.worker(({ strict }) =>
      strict.handle(({ job }) => {
        began.resolve(job.id);
        return new Promise(() => {});
      }),
    );
    const maker = await bed.replica();
    const ref = await maker.jobs.strict.create({ n: 1, site: "a" }).orThrow();
    await began.promise;
    const asked = performance.now();
    await stubborn.stop(900);
    expect(performance.now() - asked).toBeLessThan(2_500);
    const tries: number[] = [];
    await bed.worker(({ strict }) =>
      strict.handle(({ job }) => {
        tries.push(job.tries);
        return { n: 2 };
      }),
    );
    expect((await ref.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 2 });
    // Far sooner than a lease or a slot would have run out.
    expect(tries).toEqual([1]);
    await bed.settled("strict");
    await eventually(async () => (await bed.keyRecords("strict")).length === 0);
  });

  it("is safe at any time and twice, also while the broker is down", async () => {
    const replica = await bed.worker(({ plain }) =>
      plain.handle(({ job }) => new Promise((resolve) => onAbort(job.signal, () => resolve({ n: 1 })))),
    );
    await replica.jobs.plain.create({ n: 1 }).orThrow();
    await eventually(() => replica.surface.running === 1);
    await bed.nats.kill();
    const asked = performance.now();
    await Promise.all([replica.stop(800), replica.stop(800)]);
    expect(performance.now() - asked).toBeLessThan(4_000);
    await bed.restart();
  });
});
