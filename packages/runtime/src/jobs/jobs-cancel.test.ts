import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deferred } from "../lifecycle/deferred.ts";
import { onAbort } from "../lifecycle/on-abort.ts";
import { type JobsBed, startJobs } from "./jobs.test-kit.ts";

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(() => bed.reset());
afterAll(() => bed[Symbol.asyncDispose]());

const terminal = new Set(["completed", "failed", "cancelled", "expired", "skipped", "stale", "dead"]);

describe("a cancel", () => {
  it("keeps a pending job from ever running, also when no worker was there", async () => {
    const maker = await bed.replica();
    const refs = await Promise.all(
      Array.from({ length: 40 }, (_, n) => maker.jobs.plain.create({ n }).orThrow()),
    );
    const cancelled = refs.filter((_, index) => index % 2 === 0);
    await Promise.all(cancelled.map((ref) => ref.cancel().orThrow()));
    const ran = new Set<string>();
    await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        ran.add(job.id);
        return { n: 1 };
      }),
    );
    await Promise.all(refs.map((ref) => ref.wait({ timeout: "10s" }).orThrow()));
    await bed.settled("plain");
    expect(ran.size).toBe(20);
    for (const ref of cancelled) expect(ran.has(ref.id)).toBe(false);
  });

  it("aborts one that runs in under a second, from another process, and stands whatever the handler returns", async () => {
    const began = deferred<string>();
    const aborted = deferred<number>();
    await bed.worker(({ plain }) =>
      plain.handle(async ({ job }) => {
        began.resolve(job.id);
        await new Promise<void>((resolve) => onAbort(job.signal, () => resolve()));
        aborted.resolve(performance.now());
        expect(job.isCancelled()).toBe(true);
        return { n: 1 };
      }),
    );
    const other = await bed.replica();
    const ref = await other.jobs.plain.create({ n: 1 }).orThrow();
    await began.promise;
    await eventually(async () => (await ref.get().orThrow()).state === "active");
    const asked = performance.now();
    const snapshot = await ref.cancel().orThrow();
    expect(snapshot).toMatchObject({ state: "cancelled", lastError: { message: "cancelled" } });
    expect((await aborted.promise) - asked).toBeLessThan(1_000);
    await bed.settled("plain");
    expect((await ref.get().orThrow()).state).toBe("cancelled");
    const types = (await bed.events("plain", ref.id)).map(({ eventType }) => eventType);
    expect(types).toEqual(["created", "started", "cancelled", "staleCompletionIgnored"]);
    // Of a job that is over it changes nothing and publishes nothing.
    expect((await ref.cancel().orThrow()).updatedAt).toBe(snapshot.updatedAt);
  });

  it("and a completion have one winner, 1 000 times", async () => {
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(
        async ({ job }) => {
          // Around the time at which a start is written, and around the cancel.
          await new Promise((resolve) => setTimeout(resolve, job.payload.n % 12));
          return { n: 1 };
        },
        { concurrency: 50 },
      ),
    );
    const canceller = await bed.replica();
    const counts = { cancelled: 0, completed: 0 };
    for (let round = 0; round < 10; round += 1) {
      const refs = await Promise.all(
        Array.from({ length: 100 }, (_, n) => jobs.plain.create({ n }).orThrow()),
      );
      await Promise.all(
        refs.map(async (ref) => {
          const said = await canceller.jobs.plain.ref(ref.id).cancel().orThrow();
          const stands = await ref.wait({ timeout: "10s" }).orThrow();
          expect(stands.state).toBe(said.state);
          if (stands.state === "cancelled") counts.cancelled += 1;
          else counts.completed += 1;
        }),
      );
      const sample = refs[round];
      if (sample === undefined) continue;
      const events = await bed.events("plain", sample.id);
      expect(events.filter(({ eventType }) => terminal.has(eventType))).toHaveLength(1);
    }
    expect(counts.cancelled + counts.completed).toBe(1_000);
    expect(counts.cancelled).toBeGreaterThan(0);
    expect(counts.completed).toBeGreaterThan(0);
    await bed.settled("plain");
  });

  it("reaches a job whose worker was cut off meanwhile", async () => {
    const began = deferred();
    const stopped = deferred();
    const { link } = await bed.worker(({ plain }) =>
      plain.handle(async ({ job }) => {
        began.resolve();
        await new Promise<void>((resolve) => onAbort(job.signal, () => resolve()));
        stopped.resolve();
        return { n: 1 };
      }),
    );
    const other = await bed.replica();
    const ref = await other.jobs.plain.create({ n: 1 }).orThrow();
    await began.promise;
    await eventually(async () => (await ref.get().orThrow()).state === "active");
    const back = link.nats.reconnect();
    await ref.cancel().orThrow();
    await back;
    await stopped.promise;
    expect((await ref.get().orThrow()).state).toBe("cancelled");
  });

  it("of a delayed or parked job holds", async () => {
    const ran: number[] = [];
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        ran.push(job.payload.n);
        return { n: 1 };
      }),
    );
    const ref = await jobs.plain.create({ n: 1 }, { delay: "1s" }).orThrow();
    const later = await jobs.plain.create({ n: 2 }, { delay: "1500ms" }).orThrow();
    expect((await ref.cancel().orThrow()).state).toBe("cancelled");
    await later.wait({ timeout: "10s" }).orThrow();
    await bed.settled("plain");
    expect(ran).toEqual([2]);
  });
});

describe("a deadline", () => {
  it("expires a job that nobody took in time, without running it", async () => {
    const maker = await bed.replica();
    const ref = await maker.jobs.timed.create({ n: 1 }).orThrow();
    const created = Date.parse((await ref.get().orThrow()).createdAt);
    await eventually(() => Date.now() > created + 700);
    let ran = false;
    await bed.worker(({ timed }) =>
      timed.handle(() => {
        ran = true;
        return { n: 1 };
      }),
    );
    expect((await ref.wait({ timeout: "10s" }).orThrow()).state).toBe("expired");
    expect(ran).toBe(false);
  });

  it("aborts one that runs, which is expired whatever it returns", async () => {
    let reason: unknown;
    const { jobs } = await bed.worker(({ timed }) =>
      timed.handle(async ({ job }) => {
        await new Promise<void>((resolve) => onAbort(job.signal, () => resolve()));
        reason = job.signal.reason;
        return { n: 1 };
      }),
    );
    const ref = await jobs.timed.create({ n: 1 }).orThrow();
    expect((await ref.wait({ timeout: "10s" }).orThrow()).state).toBe("expired");
    expect(reason).toMatchObject({ reason: "deadline" });
  });

  it("is counted by the broker's clock, whatever the clocks of makers and workers say", async () => {
    const skewed = (by: number) => ({ now: () => Date.now() + by, monotonic: () => performance.now() });
    const maker = await bed.replica({ clock: skewed(-5 * 3_600_000) });
    await bed.worker(
      ({ timed, plain }) => {
        timed.handle(() => ({ n: 1 }));
        plain.handle(() => ({ n: 2 }));
      },
      { clock: skewed(5 * 3_600_000) },
    );
    const ref = await maker.jobs.timed.create({ n: 1 }).orThrow();
    expect((await ref.wait({ timeout: "10s" }).orThrow()).state).toBe("completed");
    const started = performance.now();
    const delayed = await maker.jobs.plain.create({ n: 1 }, { delay: "1s" }).orThrow();
    await delayed.wait({ timeout: "10s" }).orThrow();
    expect(performance.now() - started).toBeGreaterThan(950);
  });
});
