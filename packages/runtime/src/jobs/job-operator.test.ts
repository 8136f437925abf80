import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { JobOperator } from "./job-operator.ts";
import { type JobsBed, plant, startJobs } from "./jobs.test-kit.ts";
import { RetryJobError } from "./retry-job-error.ts";

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(() => bed.reset());
afterAll(() => bed[Symbol.asyncDispose]());

async function operator(): Promise<JobOperator> {
  const { link } = await bed.replica();
  const policies = new Map(Object.entries(plant.jobs).map(([queue, { policy }]) => [queue, policy]));
  return new JobOperator({
    link,
    requests: link.requests,
    timeoutMs: 5_000,
    binding: () => bed.binding,
    policy: (queue) => policies.get(queue),
  });
}

describe("an operator", () => {
  it("runs a failed job again from its beginning, and refuses what is not over", async () => {
    let healthy = false;
    const { jobs } = await bed.worker(({ plain }) =>
      plain.handle(({ job }) => {
        if (!healthy) throw new Error("broken");
        return { n: job.payload.n + 1 };
      }),
    );
    const ref = await jobs.plain.create({ n: 1 }).orThrow();
    expect(await ref.wait({ timeout: "10s" }).orThrow()).toMatchObject({ state: "failed", tries: 1 });
    healthy = true;
    const desk = await operator();
    expect(await desk.retry("plain", ref.id)).toEqual({ kind: "done", state: "pending" });
    const again = await ref.wait({ timeout: "10s" }).orThrow();
    expect(again).toMatchObject({ state: "completed", tries: 1, result: { n: 2 } });
    expect(again.lastError).toBeUndefined();
    expect(await desk.retry("plain", ref.id)).toEqual({
      kind: "refused",
      state: "completed",
      reason: "state",
    });
    expect(await desk.retry("plain", "nobody")).toEqual({ kind: "unknown" });
    expect(await desk.retry("nothing", ref.id)).toEqual({ kind: "unknown" });
  });

  it("dismisses a dead job, and cancels one that waits", async () => {
    const { jobs } = await bed.worker(({ plain }) => plain.handle(() => new RetryJobError("not now")));
    const desk = await operator();
    const later = await jobs.plain.create({ n: 1 }, { delay: "1h" }).orThrow();
    expect(await desk.dismiss("plain", later.id)).toMatchObject({ kind: "refused", state: "pending" });
    expect(await desk.cancel("plain", later.id)).toEqual({ kind: "done", state: "cancelled" });
    expect(await desk.cancel("plain", later.id)).toEqual({ kind: "unchanged", state: "cancelled" });
    const dying = await jobs.plain.create({ n: 1 }).orThrow();
    expect((await dying.wait({ timeout: "20s" }).orThrow()).state).toBe("dead");
    expect(await desk.dismiss("plain", dying.id)).toEqual({ kind: "done", state: "dismissed" });
  });
});
