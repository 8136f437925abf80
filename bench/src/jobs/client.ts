// The process that makes and works jobs in one of the systems: `client.js <system>`, with its address in the environment.
// It does what it is asked, one task after another, and answers each with numbers.
import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { median } from "../report/figures.js";
import { throughput } from "../rpc/measure.js";
import { bare } from "./bare.js";
import { trellis } from "./ours.js";
import { bullmq, pgBoss } from "./peers.js";
import type { System, SystemName, Task } from "./system.js";

const batchSize = 500;
/** Jobs that are made before they are worked, of very many. */
const slice = 20_000;
const starts: Record<SystemName, () => Promise<System>> = {
  trellis,
  BullMQ: () => bullmq(Number(process.env["BENCH_PORT"])),
  "pg-boss": () => pgBoss(Number(process.env["BENCH_PORT"])),
  bare: () => bare(String(process.env["BENCH_NATS"])),
};

const system = await starts[process.argv[2] as SystemName]();
process.on("message", (task: Task | "end") => void answer(task));
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });

async function answer(task: Task | "end"): Promise<void> {
  try {
    if (task === "end") {
      await system.close();
      process.exit(0);
    }
    process.send?.({ numbers: await perform(task) });
  } catch (error) {
    process.send?.({ error: error instanceof Error ? error.message : String(error) });
  }
}

async function perform(task: Task): Promise<readonly number[]> {
  switch (task.kind) {
    case "create":
      return [await throughput(() => system.create("single", { at: 1 }), task.inFlight, task.jobs)];
    case "batch": {
      const batch = Array.from({ length: batchSize }, () => ({ at: 1 }));
      const rate = await throughput(() => system.createMany("batch", batch), 1, task.jobs / batchSize);
      return [batchSize * rate];
    }
    case "drain":
      return [await drained(task)];
    case "latency":
      return await latencies(task.jobs);
    case "memory":
      return await memory(task.jobs);
    case "finished":
      return await finished(task.jobs);
  }
}

/** Jobs per second, from the first that is handled to the last; each system has then at most its look-ahead unsettled. */
async function drained({ queue, concurrency, jobs }: Extract<Task, { kind: "drain" }>): Promise<number> {
  for (let made = 0; made < jobs; made += batchSize)
    await system.createMany(
      queue,
      Array.from({ length: batchSize }, () => ({ at: 1 })),
    );
  let handled = 0;
  let first = 0;
  let all = () => {};
  const done = new Promise<void>((resolve, reject) => {
    const late = () => reject(new Error(`${handled} of ${jobs} after two minutes`));
    const limit = setTimeout(late, 120_000);
    all = () => {
      clearTimeout(limit);
      resolve();
    };
  });
  const stop = await system.work(queue, concurrency, () => {
    if (handled === 0) first = performance.now();
    if (++handled === jobs) all();
  });
  await done;
  const taken = performance.now() - first;
  await stop();
  return jobs / (taken / 1_000);
}

/** From create to handler at 200 jobs a second, ms. */
async function latencies(jobs: number): Promise<number[]> {
  const times: number[] = [];
  const stop = await system.work("latency", 10, ({ at }) => void times.push(performance.now() - at));
  const making: Promise<unknown>[] = [];
  const started = performance.now();
  for (let made = 0; made < jobs; made += 1) {
    await pause(Math.max(0, started + made * 5 - performance.now()));
    making.push(system.create("latency", { at: performance.now() }));
  }
  await Promise.all(making);
  for (let wait = 0; times.length < jobs && wait < 300; wait += 1) await pause(100);
  await stop();
  if (times.length < jobs) throw new Error(`${times.length} of ${jobs} handled`);
  return times;
}

/** Resident size in MiB, and by how much the heap grew over so many jobs, after collections. */
async function memory(jobs: number): Promise<number[]> {
  await drained({ kind: "drain", queue: "memory", concurrency: 100, jobs: 1_000 });
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  await drained({ kind: "drain", queue: "memory", concurrency: 100, jobs });
  globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  return [rss / 2 ** 20, (heapUsed - before) / 2 ** 20];
}

/**
 * What so many finished jobs do to a service: growth of its heap in MiB after collections, then the median of a look-up
 * by id and of a start, in ms, each before and after them.
 */
async function finished(jobs: number): Promise<number[]> {
  const { lookUp, startUp } = system;
  if (lookUp === undefined || startUp === undefined) throw new Error("not compared");
  const made = await Promise.all(Array.from({ length: 100 }, () => system.create("memory", { at: 1 })));
  await drained({ kind: "drain", queue: "memory", concurrency: 100, jobs: 1_000 });
  const probe = async () => {
    const looks = await timed(200, (index) => lookUp(made[index % made.length]));
    const starts = await timed(9, startUp);
    globalThis.gc?.();
    return { look: median(looks), start: median(starts), heap: process.memoryUsage().heapUsed / 2 ** 20 };
  };
  const before = await probe();
  for (let left = jobs; left > 0; left -= slice)
    await drained({ kind: "drain", queue: "memory", concurrency: 100, jobs: Math.min(slice, left) });
  const after = await probe();
  return [after.heap - before.heap, before.look, after.look, before.start, after.start];
}

async function timed(count: number, run: (index: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const started = performance.now();
    const ended = await run(index);
    times.push((typeof ended === "number" ? ended : performance.now()) - started);
  }
  return times;
}
