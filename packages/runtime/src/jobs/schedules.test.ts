import { defineService, job } from "@trellis/contract";
import { latestSlot } from "@trellis/protocol/jobs";
import { eventually } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Jobs, type JobsBed, type Replica, type ReplicaOptions, startJobs } from "./jobs.test-kit.ts";
import { environmentOf } from "./queue-calls.ts";

const hourMs = 3_600_000;
const hourTable = { cron: "0 * * * *", timeZone: "UTC" };

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterEach(() => bed.reset());
afterAll(() => bed[Symbol.asyncDispose]());

interface Fired {
  readonly id: string;
  readonly schedule: string;
  readonly slot: number;
}

const fired: Fired[] = [];
afterEach(() => void fired.splice(0));

function handle({ hourly }: Jobs): void {
  hourly.handle(({ job: { id, trigger } }) => {
    fired.push({ id, schedule: trigger?.name ?? "", slot: Date.parse(trigger?.id ?? "") });
    return { n: 1 };
  });
}

function clockOf({ jobs }: Replica) {
  const clock = environmentOf(jobs.hourly)?.clock;
  if (clock === undefined) throw new Error("The queue has no clock.");
  return clock;
}

/** A worker that starts when it is so much later. */
async function workerAt(laterMs: number, options: ReplicaOptions = {}): Promise<Replica> {
  const replica = await bed.replica(options);
  handle(replica.jobs);
  if (laterMs > 0) await clockOf(replica).advance(laterMs);
  await replica.start();
  return replica;
}

const since = async () => (await bed.scheduleRecords("hourly")).length;

/** All time tables of a worker hold, and what its start made is over. */
async function settled(): Promise<void> {
  await eventually(async () => (await since()) === 2);
  await bed.settled("hourly");
}

describe("a slot that nobody was there for", () => {
  it("is made up once where that is asked for, by however many replicas, and left out else (J9, J11)", async () => {
    const first = await workerAt(0);
    await settled();
    expect(fired).toEqual([]);
    await first.stop();
    // Long enough that several slots of both were missed; not at the very turn of an hour.
    const later = 5 * hourMs + offTurn();
    const replicas = await Promise.all([workerAt(later), workerAt(later)]);
    await eventually(() => fired.length > 0, { timeout: 10_000 });
    await settled();
    const [replica] = replicas;
    const now = replica === undefined ? 0 : clockOf(replica).now();
    expect(fired.map(({ schedule, slot }) => ({ schedule, slot }))).toEqual([
      { schedule: "hour", slot: latestSlot(hourTable, now) },
    ]);
    // A replica that comes later finds it made, and goes on with the next.
    await clockOf(await workerAt(later)).advance(hourMs);
    await eventually(() => fired.length > 1, { timeout: 10_000 });
    await bed.settled("hourly");
    expect(fired.map(({ schedule, slot }) => ({ schedule, slot }))).toEqual([
      { schedule: "hour", slot: latestSlot(hourTable, now) },
      { schedule: "hour", slot: latestSlot(hourTable, now + hourMs) },
    ]);
  });

  it("is the latest one only, also of a worker that was there and stood still (J11)", async () => {
    const replica = await workerAt(0);
    await settled();
    await clockOf(replica).advance(7 * hourMs + offTurn());
    await eventually(() => fired.length > 0, { timeout: 10_000 });
    await bed.settled("hourly");
    expect(fired.map(({ schedule, slot }) => ({ schedule, slot }))).toEqual([
      { schedule: "hour", slot: latestSlot(hourTable, clockOf(replica).now()) },
    ]);
  });

  it("was none before its time table was declared, nor before it was changed (J11)", async () => {
    const first = await workerAt(0);
    await settled();
    await first.stop();
    const changed = defineService("acme.plant", {
      jobs: {
        hourly: job({
          payload: Type.Object({ n: Type.Number() }),
          result: Type.Object({ n: Type.Number() }),
          schedules: { hour: { cron: "20 * * * *", payload: { n: 1 }, missed: "once" } },
        }),
      },
    });
    const second = await workerAt(5 * hourMs + offTurn(), { participant: changed });
    const declaredAt = clockOf(second).now();
    await eventually(async () =>
      (await bed.scheduleRecords("hourly")).some((text) => text.includes("20 * * * *")),
    );
    await clockOf(second).advance(hourMs);
    await eventually(() => fired.length > 0, { timeout: 10_000 });
    await bed.settled("hourly");
    expect(fired).toHaveLength(1);
    expect(fired[0]?.slot).toBeGreaterThan(declaredAt);
  });
});

/** What makes an instant lie at ten minutes past an hour. */
function offTurn(): number {
  return (10 * 60_000 - (Date.now() % hourMs) + hourMs) % hourMs;
}
