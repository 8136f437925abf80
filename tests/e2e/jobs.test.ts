import { defineApp, defineService, job, use } from "@trellis/contract";
import { jobsApi } from "@trellis/control-plane/core";
import { eventually, startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { expect, it } from "vitest";

const press = defineService("acme.press", {
  jobs: {
    print: job({ payload: Type.Object({ page: Type.Integer() }), retry: { attempts: 1, backoff: [] } }),
  },
});
const desk = defineApp("acme.desk", { uses: [use(jobsApi)] });

it("operators see jobs, their history and queues, pause, retry one and all that match", async () => {
  await using trellis = await startTrellis();
  let broken = true;
  const service = await trellis.service(press, (press) =>
    press.jobs.print.handle(({ job }) => {
      if (broken && job.payload.page > 0) throw new Error("paper jam");
    }),
  );
  const { jobs } = (await trellis.client(desk)).rpc;
  const pages = Array.from({ length: 30 }, (_, page) => ({ page }));
  const made = await service.jobs.print.createMany(pages).orThrow();
  const refs = made.map((ref) => ref.orThrow());
  const where = { deployment: "acme.press", queue: "print" };
  const { states } = await eventually(async () => {
    const summary = await jobs.summary(where).orThrow();
    expect(summary.states).toEqual({ completed: 1, failed: 29 });
    return summary;
  });
  expect(states["dead"]).toBeUndefined();
  const failed = { ...where, states: ["failed" as const], error: "paper jam" };
  const first = await jobs.query({ ...failed, limit: 20 }).orThrow();
  expect(first.jobs).toHaveLength(20);
  const rest = await jobs.query({ ...failed, limit: 20, cursor: first.cursor ?? "" }).orThrow();
  expect(rest.jobs).toHaveLength(9);
  expect(rest.cursor).toBeUndefined();
  const id = refs[7]?.id ?? "";
  const { job, events } = await jobs.get({ ...where, id }).orThrow();
  expect(job).toMatchObject({ id, state: "failed", payload: { page: 7 } });
  expect(events.map(({ type }) => type)).toEqual(["created", "failed"]);
  expect(await jobs.pauseQueue(where).orThrow()).toMatchObject({ paused: true, running: 0 });
  broken = false;
  expect(await jobs.retry({ ...where, id }).orThrow()).toMatchObject({ changed: 1, state: "pending" });
  const again = await jobs.retry({ ...where, id }).orThrow();
  expect(again).toMatchObject({ changed: 0, refused: 1, reason: "state" });
  let changed = 0;
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const page: { changed: number; cursor?: string } = await jobs
      .retry({ ...failed, limit: 10, ...(cursor === "" ? {} : { cursor }) })
      .orThrow();
    changed += page.changed;
    cursor = page.cursor;
  }
  expect(changed).toBe(28);
  expect((await jobs.queues({}).orThrow()).queues[0]).toMatchObject({ queue: "print", paused: true });
  expect(await jobs.resumeQueue(where).orThrow()).toMatchObject({ paused: false });
  for (const ref of refs) expect((await ref.wait({ timeout: "20s" }).orThrow()).state).toBe("completed");
  await eventually(async () =>
    expect((await jobs.summary(where).orThrow()).states).toEqual({ completed: 30 }),
  );
  const missing = await jobs.get({ ...where, id: "nobody" });
  expect(missing.isErr() && missing.error).toMatchObject({ type: "NotKnown" });
});
