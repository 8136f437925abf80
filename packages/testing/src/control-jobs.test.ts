import { defineService, job } from "@trellis/contract";
import { Type } from "typebox";
import { expect, expectTypeOf, it } from "vitest";
import { controlJobs } from "./control-jobs.ts";
import { startTrellis } from "./start-trellis.ts";

const Mail = Type.Object({ to: Type.String() });
const mailer = defineService("acme.mailer", {
  jobs: {
    remind: job({
      payload: Mail,
      result: Type.Object({ sent: Type.Integer() }),
      retry: { attempts: 3, backoff: ["20ms", "10m"] },
    }),
    expire: job({ payload: Mail, deadline: "1h" }),
    report: job({ payload: Mail, schedules: { hourly: { cron: "0 * * * *", payload: { to: "boss" } } } }),
  },
});

async function start(remind: (to: string) => number) {
  const trellis = await startTrellis();
  const service = await trellis.service(mailer, ({ jobs }) => {
    jobs.remind.handle(({ job: { payload } }) => ({ sent: remind(payload.to) }), { retryOn: () => true });
    jobs.expire.handle(() => {});
    jobs.report.handle(() => {});
  });
  return { trellis, service, jobs: controlJobs(service.jobs) };
}

it("runs what is due, sees what already happened, and advances the clock over delays", async () => {
  let sent = 0;
  const { trellis, service, jobs } = await start(() => ++sent);
  await using _ = trellis;
  await service.jobs.remind.create({ to: "ada" }).orThrow();
  await jobs.drain();
  const [first] = await jobs.seen("remind");
  expectTypeOf(first?.payload).toEqualTypeOf<{ to: string } | undefined>();
  expectTypeOf(first?.result).toEqualTypeOf<{ sent: number } | undefined>();
  expect(first).toMatchObject({ state: "completed", payload: { to: "ada" }, result: { sent: 1 } });

  const later = await service.jobs.remind.create({ to: "bob" }, { delay: "2h" }).orThrow();
  await jobs.drain();
  expect((await later.get().orThrow()).state).toBe("pending");
  await jobs.advance("1h");
  await jobs.drain();
  expect((await later.get().orThrow()).state).toBe("pending");
  // A delay that begins now is counted from now.
  const after = await service.jobs.remind.create({ to: "eve" }, { delay: "90m" }).orThrow();
  await jobs.advance("61m");
  await jobs.drain();
  expect((await later.get().orThrow()).state).toBe("completed");
  expect((await after.get().orThrow()).state).toBe("pending");
  await jobs.advance("30m");
  expect(
    await jobs.waitFor("remind", ({ state, payload }) => state === "completed" && payload.to === "eve"),
  ).toMatchObject({ result: { sent: 3 } });
});

it("advances over backoffs, and over deadlines of what has not begun", async () => {
  let tries = 0;
  const { trellis, service, jobs } = await start(() => {
    tries += 1;
    if (tries < 3) throw new Error("not now");
    return tries;
  });
  await using _ = trellis;
  const ref = await service.jobs.remind.create({ to: "ada" }).orThrow();
  await jobs.drain();
  expect([tries, (await ref.get().orThrow()).state]).toEqual([2, "retry"]);
  await jobs.advance("10m");
  await jobs.drain();
  expect((await ref.get().orThrow()).result).toEqual({ sent: 3 });
  const late = await service.jobs.expire.create({ to: "ada" }, { delay: "10m" }).orThrow();
  await jobs.advance("2h");
  await jobs.drain();
  expect((await late.get().orThrow()).state).toBe("expired");
});

it("lets time tables make the jobs of every slot that it passes", async () => {
  const { trellis, jobs } = await start(() => 1);
  await using _ = trellis;
  await jobs.advance("1d");
  await jobs.drain();
  const reports = await jobs.seen("report");
  expect(reports).toHaveLength(24);
  expect(new Set(reports.map(({ state }) => state))).toEqual(new Set(["completed"]));
  expect(new Set(reports.map(({ trigger }) => trigger?.id)).size).toBe(24);
});

it("says what is left when it takes too long, and which queue there is not", async () => {
  const { trellis, service, jobs } = await start(() => {
    throw new Error("never");
  });
  await using _ = trellis;
  await expect(jobs.waitFor("remind", () => true, { timeout: 50 })).rejects.toThrow("there are: none");
  let release = () => {};
  const blocked = defineService("acme.blocked", { jobs: { slow: job({ payload: Mail }) } });
  const other = await trellis.service(blocked, ({ jobs: queues }) => {
    queues.slow.handle(() => new Promise<void>((resolve) => (release = resolve)));
  });
  const { id } = await other.jobs.slow.create({ to: "ada" }).orThrow();
  const slow = controlJobs(other.jobs);
  await expect(slow.drain({ timeout: 300 })).rejects.toThrow(`slow/${id}`);
  release();
  await slow.drain();
  // @ts-expect-error: no such queue
  await expect(controlJobs(service.jobs).seen("remnd")).rejects.toThrow('no queue "remnd"');
});
