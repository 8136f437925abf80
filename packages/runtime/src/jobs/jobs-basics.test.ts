import { CancelledError, NotFoundError, ValidationError } from "@trellis/protocol";
import { err } from "@trellis/result";
import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deferred } from "../lifecycle/deferred.ts";
import { type JobsBed, startJobs } from "./jobs.test-kit.ts";
import { RetryJobError } from "./retry-job-error.ts";

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(() => bed.reset());
afterAll(() => bed[Symbol.asyncDispose]());

describe("a job", () => {
  it("is made, handled and over, under exactly the permissions that jobs need", async () => {
    const { jobs } = await bed.worker(({ plain }) => plain.handle(({ job }) => ({ n: job.payload.n + 1 })));
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    const snapshot = await ref.wait({ timeout: "10s" }).orThrow();
    expect(snapshot).toMatchObject({
      id: ref.id,
      service: "plant1",
      type: "plain",
      state: "completed",
      payload: { n: 1 },
      result: { n: 2 },
      tries: 1,
      maxTries: 3,
      trigger: { kind: "serviceCode" },
    });
    expect(await ref.waitForResult().orThrow()).toEqual({ n: 2 });
    await bed.settled("plain");
  });

  it("is waited for from another process, also when it is over or does not exist", async () => {
    await bed.worker(({ plain }) => plain.handle(({ job }) => ({ n: job.payload.n })));
    const maker = await bed.replica();
    const ref = await maker.jobs.plain.create({ n: 1 }).orThrow();
    await ref.wait({ timeout: "10s" }).orThrow();
    const stranger = await bed.replica();
    const again = await stranger.jobs.plain.ref(ref.id).wait({ timeout: "10s" }).orThrow();
    expect(again.state).toBe("completed");
    const unknown = await stranger.jobs.plain.ref("nobody").wait({ timeout: "10s" });
    expect(unknown.isErr() && unknown.error).toBeInstanceOf(NotFoundError);
    const illegal = await stranger.jobs.plain.ref("a.b").get();
    expect(illegal.isErr() && illegal.error).toBeInstanceOf(ValidationError);
  });

  it("is tried again when its handler asks for that, and dead when its attempts are used up", async () => {
    const seen: number[] = [];
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        seen.push(job.tries);
        if (job.payload.n === 1 && job.tries === 3) return { n: 3 };
        return err(new RetryJobError("not yet"));
      }),
    );
    const good = await jobs.plain.create({ n: 1 }).orThrow();
    expect((await good.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 3 });
    expect(seen).toEqual([1, 2, 3]);
    const bad = await jobs.plain.create({ n: 2 }).orThrow();
    const dead = await bad.wait({ timeout: "10s" }).orThrow();
    expect(dead).toMatchObject({ state: "dead", tries: 3, lastError: { type: "RetryJobError" } });
    expect((await bad.waitForResult()).isErr()).toBe(true);
  });

  it("fails at once with any other error, whatever its text", async () => {
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(() => {
        throw new Error("nul \0, lone \ud800");
      }),
    );
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    const failed = await ref.wait({ timeout: "10s" }).orThrow();
    expect(failed).toMatchObject({ state: "failed", tries: 1, lastError: { type: "Error" } });
    await bed.settled("plain");
  });

  it("is parked by the broker for a longer backoff", async () => {
    const at: number[] = [];
    const { jobs } = await bed.worker(({ parked }) =>
      parked.handle(({ job }) => {
        at.push(performance.now());
        if (job.tries === 1) throw new RetryJobError();
        return { n: job.tries };
      }),
    );
    const ref = await jobs.parked.create({ n: 1 }).orThrow();
    await eventually(async () => (await ref.get().orThrow()).state === "retry");
    await bed.settled("parked");
    expect((await ref.wait({ timeout: "10s" }).orThrow()).result).toEqual({ n: 2 });
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(1_000);
  });

  it("runs no earlier than it is due, and needs no worker to wait for it", async () => {
    const maker = await bed.replica();
    const started = performance.now();
    const ref = await maker.jobs.plain.create({ n: 1 }, { delay: "1200ms" }).orThrow();
    const at = new Date(Date.now() + 900);
    const fixed = await maker.jobs.plain.create({ n: 2 }, { runAt: at }).orThrow();
    await bed.worker(({ plain }) => plain.handle(({ job }) => ({ n: job.payload.n })));
    await fixed.wait({ timeout: "10s" }).orThrow();
    expect(Date.now()).toBeGreaterThan(at.getTime() - 100);
    await ref.wait({ timeout: "10s" }).orThrow();
    expect(performance.now() - started).toBeGreaterThan(1_150);
    expect((await maker.jobs.plain.create({ n: 1 }, { runAt: "2030-01-01T00:00:00" })).isErr()).toBe(true);
  });

  it("has one id for ever: a second one of the same id, or submission, is the first", async () => {
    const { jobs } = await bed.worker(({ plain }) => plain.handle(({ job }) => ({ n: job.payload.n })));
    const first = await jobs.plain.create({ n: 1 }, { id: "only" }).orThrow();
    await first.wait({ timeout: "10s" }).orThrow();
    const second = await jobs.plain.create({ n: 2 }, { id: "only" }).orThrow();
    expect((await second.wait().orThrow()).payload).toEqual({ n: 1 });
    const [a, b] = await Promise.all([
      jobs.plain.create({ n: 3 }, { submissionId: "s 1" }).orThrow(),
      jobs.plain.create({ n: 4 }, { submissionId: "s 1" }).orThrow(),
    ]);
    expect(a.id).toBe(b.id);
  });

  it("refuses what cannot be a job", async () => {
    const { jobs } = await bed.replica();
    const wrong: unknown = { n: "x" };
    expect((await jobs.plain.create(wrong as { n: number })).isErr()).toBe(true);
    for (const id of ["a.b", "a b", "*", ">", "", "é", "\0", "x".repeat(300)])
      expect((await jobs.plain.create({ n: 1 }, { id })).isErr()).toBe(true);
    const large = await jobs.plain.create({ n: 1, pad: "x".repeat(1_100_000) });
    expect(large.isErr() && large.error).toBeInstanceOf(ValidationError);
    const many = await jobs.plain.createMany([{ n: 1 }, wrong as { n: number }]);
    expect(many.isErr() && many.error).toMatchObject({ errors: [{ path: "/1/n" }] });
  });

  it("ends as failed when its result is too large or does not fit", async () => {
    const wrong: unknown = { wrong: true };
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(({ job }) =>
        job.payload.n === 1 ? { n: 1, pad: "x".repeat(1_100_000) } : (wrong as { n: number }),
      ),
    );
    for (const n of [1, 2]) {
      const ref = await jobs.plain.create({ n }).orThrow();
      const { state, lastError } = await ref.wait({ timeout: "10s" }).orThrow();
      expect({ state, type: lastError?.type }).toEqual({ state: "failed", type: "ValidationError" });
    }
  });

  it("tells of progress, logs and waiting, apart from its transitions", async () => {
    const gate = deferred();
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(async ({ job }) => {
        await job.progress({ step: "one", current: 1, total: 2 }).orThrow();
        await job.progress({ step: "two", current: 2, total: 2 }).orThrow();
        await job.log({ level: "info", message: "hello" }).orThrow();
        await job.heartbeat().orThrow();
        await job.waitFor({ kind: "external", target: "a person" }, () => gate.promise);
        return { n: 1 };
      }),
    );
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    await eventually(async () => (await ref.get().orThrow()).waitingOn?.length === 1);
    expect(await ref.get().orThrow()).toMatchObject({
      state: "active",
      progress: { step: "two" },
      logs: [{ level: "info", message: "hello" }],
      waitingOn: [{ kind: "external", target: "a person" }],
    });
    gate.resolve();
    expect(await ref.wait({ timeout: "10s" }).orThrow()).toMatchObject({ state: "completed", waitingOn: [] });
  });

  it("sends live updates to those who listen, and ends them with the job", async () => {
    const gate = deferred();
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(async ({ job }) => {
        await gate.promise;
        for (let percent = 0; percent < 5; percent += 1) await job.emitUpdate({ percent }).orThrow();
        return { n: 1 };
      }),
    );
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    const updates = await ref.updates().orThrow();
    gate.resolve();
    const seen: number[] = [];
    for await (const { update, sequence } of updates) {
      seen.push(update.percent);
      expect(sequence).toBe(seen.length);
    }
    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  it("makes many in one call", async () => {
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(({ job }) => ({ n: job.payload.n }), { concurrency: 10 }),
    );
    const made = await jobs.plain.createMany(Array.from({ length: 300 }, (_, n) => ({ n }))).orThrow();
    const refs = made.map((each) => each.orThrow());
    const ends = await Promise.all(refs.map((ref) => ref.wait({ timeout: "20s" }).orThrow()));
    expect(ends.every(({ state }) => state === "completed")).toBe(true);
    await bed.settled("plain");
  });

  it("settles pending waits when the connection is stopped", async () => {
    const replica = await bed.replica();
    const ref = await replica.jobs.plain.create({ n: 1 }).orThrow();
    const waiting = ref.wait();
    await eventually(() => replica.link.requests.size === 0);
    await replica.stop();
    const ended = await waiting;
    expect(ended.isErr() && ended.error).toBeInstanceOf(CancelledError);
  });
});
