import { JobNotEnqueuedError } from "@trellis/protocol";
import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deferred } from "../lifecycle/deferred.ts";
import { onAbort } from "../lifecycle/on-abort.ts";
import { type JobsBed, startJobs } from "./jobs.test-kit.ts";
import { RetryJobError } from "./retry-job-error.ts";

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(() => bed.reset());
afterAll(() => bed[Symbol.asyncDispose]());

describe("jobs of one key", () => {
  it("run one at a time, in order, over two replicas; those of other keys beside them; nothing is left", async () => {
    const active = new Map<string, number>();
    const order: string[] = [];
    let most = 0;
    const handle = async ({ job }: { job: { payload: { n: number; site?: string | number } } }) => {
      const site = String(job.payload.site);
      active.set(site, (active.get(site) ?? 0) + 1);
      expect(active.get(site)).toBe(1);
      most = Math.max(
        most,
        [...active.values()].reduce((a, b) => a + b),
      );
      order.push(`${site}:${job.payload.n}`);
      await new Promise((resolve) => setTimeout(resolve, 3));
      active.set(site, (active.get(site) ?? 0) - 1);
      return { n: job.payload.n };
    };
    for (let replica = 0; replica < 2; replica += 1)
      await bed.worker(({ keyed }) => keyed.handle(handle, { concurrency: 8 }));
    const maker = await bed.replica();
    const refs = [];
    for (let n = 0; n < 15; n += 1)
      for (const site of ["a", "b", "c", "d"])
        refs.push(await maker.jobs.keyed.create({ n, site }).orThrow());
    await Promise.all(refs.map((ref) => ref.wait({ timeout: "20s" }).orThrow()));
    for (const site of ["a", "b", "c", "d"]) {
      const own = order.filter((each) => each.startsWith(site));
      expect(own).toEqual(Array.from({ length: 15 }, (_, n) => `${site}:${n}`));
    }
    expect(most).toBeGreaterThan(1);
    await bed.settled("keyed");
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  });

  it("tell 1 from '1' and take any text; what is no segment is refused", async () => {
    const { jobs } = await bed.replica();
    for (const site of ["a.b", "a b", "*", "", "é", "\0", "x".repeat(300), "__proto__", "1", 1])
      expect((await jobs.strict.submit({ n: 1, site }).orThrow()).kind).toBe("accepted");
    expect(await bed.keyRecords("strict")).toHaveLength(10);
    expect((await jobs.strict.create({ n: 1 })).isErr()).toBe(true);
  });

  it("are rejected, merged or replaced when the key is full, each with a typed outcome", async () => {
    const { jobs } = await bed.replica();
    const first = await jobs.strict.create({ n: 1, site: "a" }).orThrow();
    const refused = await jobs.strict.create({ n: 2, site: "a" });
    expect(refused.isErr() && refused.error).toBeInstanceOf(JobNotEnqueuedError);
    expect(refused.isErr() && refused.error).toMatchObject({
      reason: "active-limit",
      existingJobId: first.id,
      active: 1,
      key: '["a"]',
    });
    await jobs.merging.create({ n: 1, site: "a" }).orThrow();
    const second = await jobs.merging.create({ n: 2, site: "a" }).orThrow();
    const merged = await jobs.merging.submit({ n: 3, site: "a" }).orThrow();
    expect(merged).toMatchObject({ kind: "coalesced", existing: { id: second.id } });
    await jobs.replacing.create({ n: 1, site: "a" }).orThrow();
    const old = await jobs.replacing.create({ n: 2, site: "a" }).orThrow();
    const replaced = await jobs.replacing.submit({ n: 3, site: "a" }).orThrow();
    expect(replaced).toMatchObject({ kind: "replaced", replaced: { id: old.id } });
    expect((await old.wait({ timeout: "5s" }).orThrow()).state).toBe("skipped");
  });

  it("give the same submission the same outcome", async () => {
    const { jobs } = await bed.replica();
    await jobs.strict.create({ n: 1, site: "a" }).orThrow();
    const outcomes = await Promise.all(
      [1, 2, 3].map(() => jobs.strict.submit({ n: 2, site: "a" }, { submissionId: "s" }).orThrow()),
    );
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["rejected"]));
    const [a, b] = await Promise.all(
      [1, 2].map(() => jobs.keyed.create({ n: 2, site: "k" }, { submissionId: "t" }).orThrow()),
    );
    expect(a?.id).toBe(b?.id);
    expect(await bed.keyRecords("keyed")).toHaveLength(1);
  });

  it("never multiply: five submissions while one runs make one more at the most", async () => {
    const gate = deferred();
    let runs = 0;
    const { jobs } = await bed.worker(({ replacing }) =>
      replacing.handle(
        async () => {
          runs += 1;
          await gate.promise;
          return { n: 1 };
        },
        { concurrency: 8 },
      ),
    );
    const refs = [await jobs.replacing.create({ n: 0, site: "a" }).orThrow()];
    await eventually(() => runs === 1);
    for (let n = 1; n <= 5; n += 1) refs.push(await jobs.replacing.create({ n, site: "a" }).orThrow());
    gate.resolve();
    const ends = await Promise.all(refs.map((ref) => ref.wait({ timeout: "10s" }).orThrow()));
    expect(ends.map(({ state }) => state)).toEqual([
      "completed",
      "skipped",
      "skipped",
      "skipped",
      "skipped",
      "completed",
    ]);
    expect(runs).toBe(2);
  });

  it("let go of the key when cancelled, in whatever state", async () => {
    const gate = deferred();
    const ran: number[] = [];
    const { jobs } = await bed.worker(({ keyed }) =>
      keyed.handle(async ({ job }) => {
        ran.push(job.payload.n);
        if (job.payload.n === 0)
          await Promise.race([
            gate.promise,
            new Promise<void>((resolve) => onAbort(job.signal, () => resolve())),
          ]);
        return { n: 1 };
      }),
    );
    const [running, waiting, last] = [
      await jobs.keyed.create({ n: 0, site: "a" }).orThrow(),
      await jobs.keyed.create({ n: 1, site: "a" }).orThrow(),
      await jobs.keyed.create({ n: 2, site: "a" }).orThrow(),
    ];
    await eventually(() => ran.length === 1);
    await waiting.cancel().orThrow();
    await running.cancel().orThrow();
    expect((await last.wait({ timeout: "10s" }).orThrow()).state).toBe("completed");
    expect(ran).toEqual([0, 2]);
    await bed.settled("keyed");
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  });

  it("let others go first while they wait for a retry", async () => {
    const order: string[] = [];
    const { jobs } = await bed.worker(({ keyed }) =>
      keyed.handle(({ job }) => {
        order.push(`${job.payload.n}.${job.tries}`);
        if (job.payload.n === 0 && job.tries === 1) throw new RetryJobError();
        return { n: 1 };
      }),
    );
    const refs = [];
    for (let n = 0; n < 3; n += 1) refs.push(await jobs.keyed.create({ n, site: "a" }).orThrow());
    for (const ref of refs) expect((await ref.wait({ timeout: "10s" }).orThrow()).state).toBe("completed");
    expect(order).toContain("0.2");
    await bed.settled("keyed");
    await eventually(async () => (await bed.keyRecords("keyed")).length === 0);
  });

  it("get on with 50 makers of one key at a time", async () => {
    const { jobs } = await bed.worker(({ keyed }) => keyed.handle(() => ({ n: 1 }), { concurrency: 4 }));
    const others = await Promise.all([bed.replica(), bed.replica(), bed.replica()]);
    const makers = [jobs, ...others.map((each) => each.jobs)];
    const refs = await Promise.all(
      Array.from({ length: 50 }, (_, n) => makers[n % 4]?.keyed.create({ n, site: "hot" }).orThrow()),
    );
    const ends = await Promise.all(refs.map((ref) => ref?.wait({ timeout: "20s" }).orThrow()));
    expect(ends.every((end) => end?.state === "completed")).toBe(true);
  });

  it("bound the whole queue where there is no key", async () => {
    const { jobs } = await bed.replica();
    for (let n = 0; n < 2; n += 1) await jobs.bounded.create({ n }).orThrow();
    const third = await jobs.bounded.create({ n: 3 });
    expect(third.isErr() && third.error).toMatchObject({ reason: "queue-depth", limit: 2 });
    const { jobs: working } = await bed.worker(({ bounded }) => bounded.handle(() => ({ n: 1 })));
    await bed.settled("bounded");
    expect((await working.bounded.create({ n: 4 })).isOk()).toBe(true);
  });
});
