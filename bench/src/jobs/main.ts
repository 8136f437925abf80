// Jobs: ours against BullMQ on redis and pg-boss on PostgreSQL; the same machine, the same run, no-op handlers,
// interleaved repeats, medians of paired ratios.

import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { type Figures, median, percentile } from "../report/figures.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { throughput } from "../rpc/measure.js";
import { type QueueName, trellis } from "./ours.js";
import { bullmq, pgBoss, type System } from "./peers.js";

const queues: readonly QueueName[] = ["made", "batch", "drain1", "drain10", "drain100", "latency"];
const batchSize = 500;
type Measure = (system: System) => Promise<number>;

const opts = options();
const systems = await startAll(opts);
try {
  const figures: Figures = {};
  await rates(systems, opts, figures);
  await latency(systems, opts, figures);
  await memory(systems, figures);
  finish("jobs", opts, figures);
} finally {
  for (const system of systems) await system[Symbol.asyncDispose]();
}
// A peer may keep timers of its own.
process.exit(0);

async function startAll({ say }: Options): Promise<System[]> {
  const started: System[] = [];
  for (const [name, start] of Object.entries({ trellis, BullMQ: bullmq, "pg-boss": pgBoss })) {
    say(`starting ${name}`);
    try {
      const system = await start();
      for (const queue of queues) await system.prepare(queue);
      started.push(system);
      console.log(`${name}: ${system.durability}`);
    } catch (error) {
      if (name === "trellis") throw error;
      console.log(`${name} is NOT measured, its set-up failed: ${String(error).split("\n")[0]}`);
    }
  }
  return started;
}

function measures(jobs: number): Record<string, Measure> {
  const payload = () => ({ at: 1 });
  const batch = () => Array.from({ length: batchSize }, payload);
  const drain = (queue: QueueName, concurrency: number) => (system: System) =>
    drained(system, { queue, concurrency, jobs });
  return {
    "create one by one": (system) => throughput(() => system.create("made", payload()), 1, jobs / 4),
    "create, 64 in flight": (system) => throughput(() => system.create("made", payload()), 64, jobs),
    "create in batches": async (system) =>
      batchSize * (await throughput(() => system.createMany("batch", batch()), 1, jobs / batchSize)),
    "drain at 1": drain("drain1", 1),
    "drain at 10": drain("drain10", 10),
    "drain at 100": drain("drain100", 100),
  };
}

interface Drain {
  readonly queue: QueueName;
  readonly concurrency: number;
  readonly jobs: number;
}

/** Jobs per second from the first that is handled to the last. */
async function drained(system: System, { queue, concurrency, jobs }: Drain): Promise<number> {
  for (let made = 0; made < jobs; made += batchSize)
    await system.createMany(
      queue,
      Array.from({ length: batchSize }, () => ({ at: 1 })),
    );
  return await new Promise<number>((resolve, reject) => {
    let handled = 0;
    let first = 0;
    const limit = setTimeout(() => reject(new Error(`${system.name}: ${handled} of ${jobs}`)), 300_000);
    const working = system.work(queue, concurrency, () => {
      if (handled === 0) first = performance.now();
      if (++handled !== jobs) return;
      clearTimeout(limit);
      const rate = (jobs - 1) / ((performance.now() - first) / 1_000);
      working.then((stop) => stop()).then(() => resolve(rate), reject);
    });
    working.catch(reject);
  });
}

function goalOf(what: string, peer: string): number | undefined {
  if (what.startsWith("drain")) return peer === "BullMQ" ? 1.5 : 5;
  return what === "create in batches" && peer === "BullMQ" ? 2 : undefined;
}

async function rates(systems: readonly System[], { quick, say }: Options, figures: Figures): Promise<void> {
  const found = new Map<string, number[]>();
  const ways = Object.entries(measures(quick ? 1_000 : 5_000));
  const repeats = quick ? 1 : 5;
  for (let repeat = -1; repeat < repeats; repeat++) {
    say(`rates, round ${repeat + 1} of ${repeats}${repeat < 0 ? " (warm-up)" : ""}`);
    for (const [what, measure] of ways)
      for (const system of systems) {
        const rate = await measure(system);
        if (repeat >= 0)
          found.set(`${what} ${system.name}`, [...(found.get(`${what} ${system.name}`) ?? []), rate]);
      }
  }
  const rows = ways.map(([what]) => {
    const ours = found.get(`${what} trellis`) ?? [];
    const cells = systems.map(({ name }) => {
      const theirs = found.get(`${what} ${name}`) ?? [];
      if (name === "trellis") return Math.round(median(ours)).toString();
      const ratio = median(ours.map((rate, index) => rate / (theirs[index] ?? Number.NaN)));
      const goal = goalOf(what, name);
      figures[`jobs ${what} against ${name}`] = {
        value: Math.round(median(ours)),
        unit: "jobs/s",
        baseline: name,
        ratio: Number(ratio.toFixed(3)),
        ...(goal === undefined ? {} : { goal: `at least ${goal} x` }),
        ok: goal === undefined || ratio >= goal,
      };
      return `${Math.round(median(theirs))} (${ratio.toFixed(2)})`;
    });
    return [what, ...cells];
  });
  console.log("\nJobs per second (trellis as a multiple of the peer)");
  printTable(["", ...systems.map(({ name }) => name)], rows);
}

async function latency(systems: readonly System[], { quick, say }: Options, figures: Figures): Promise<void> {
  const rows: string[][] = [];
  for (const system of systems) {
    say(`latency at 200 jobs/s, ${system.name}`);
    const total = quick ? 400 : 2_000;
    const times: number[] = [];
    const stop = await system.work("latency", 10, ({ at }) => void times.push(performance.now() - at));
    const making: Promise<unknown>[] = [];
    const started = performance.now();
    for (let made = 0; made < total; made++) {
      await pause(Math.max(0, started + made * 5 - performance.now()));
      making.push(system.create("latency", { at: performance.now() }));
    }
    await Promise.all(making);
    for (let wait = 0; times.length < total && wait < 300; wait++) await pause(100);
    await stop();
    if (times.length < total) throw new Error(`${system.name}: ${times.length} of ${total} handled`);
    const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
    for (const [name, value] of Object.entries({ p50, p99 }))
      figures[`jobs latency ${name}, ${system.name}`] = {
        value: Number(value.toFixed(2)),
        unit: "ms",
        ok: true,
      };
    rows.push([system.name, p50.toFixed(2), p99.toFixed(2)]);
  }
  console.log("\nFrom create to handler at 200 jobs/s, ms");
  printTable(["", "p50", "p99"], rows);
}

/** What the process keeps per job that is over: heap after collections. */
async function memory(systems: readonly System[], figures: Figures): Promise<void> {
  const rows: string[][] = [];
  for (const system of systems) {
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    await drained(system, { queue: "drain100", concurrency: 100, jobs: 2_000 });
    globalThis.gc?.();
    const grown = (process.memoryUsage().heapUsed - before) / 2 ** 20;
    figures[`jobs heap growth over 2000 jobs, ${system.name}`] = {
      value: Number(grown.toFixed(1)),
      unit: "MiB",
      ok: true,
    };
    rows.push([system.name, grown.toFixed(1)]);
  }
  console.log("\nHeap growth over 2 000 jobs, MiB");
  printTable(["", "MiB"], rows);
}
