// Jobs: ours against BullMQ on Redis and pg-boss on PostgreSQL, and against the bare writes that ours need; the same
// machine, the same run, no-op handlers, interleaved repeats, medians of paired ratios.
import { fileURLToPath } from "node:url";
import { type Figures, median, percentile } from "../report/figures.js";
import { writePlot } from "../report/plot.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { Contender } from "./contenders.js";
import { systemNames, type Task } from "./system.js";

const opts = options();
const contenders: Contender[] = [];
let stopping: Promise<void> | undefined;
const stop = () =>
  (stopping ??= (async () => {
    for (const contender of contenders.splice(0)) await contender[Symbol.asyncDispose]();
  })());
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void stop().finally(() => process.exit(signal === "SIGINT" ? 130 : 143)));

try {
  await startAll(opts);
  const figures: Figures = {};
  await rates(opts, figures);
  await latency(opts, figures);
  await memory(opts, figures);
  await finished(opts, figures);
  finish("jobs", opts, figures);
} finally {
  await stop();
}
process.exit(0);

async function startAll({ say }: Options): Promise<void> {
  for (const name of systemNames) {
    say(`starting ${name}`);
    try {
      contenders.push(await Contender.start(name));
      console.log(`${name}: ${contenders.at(-1)?.durability}`);
    } catch (error) {
      if (name === "trellis") throw error;
      console.log(`${name} is not measured, its set-up failed: ${String(error).split("\n")[0]}`);
    }
  }
}

/** What is measured, by the name of its row. */
function tasks(quick: boolean): Record<string, Task> {
  const scale = quick ? 1 : 4;
  return {
    "create, one by one": { kind: "create", inFlight: 1, jobs: 1_000 * scale },
    "create, 64 in flight": { kind: "create", inFlight: 64, jobs: 5_000 * scale },
    "create in batches of 500": { kind: "batch", jobs: 5_000 * scale },
    "drain, concurrency 1": { kind: "drain", queue: "drain1", concurrency: 1, jobs: 1_000 * scale },
    "drain, concurrency 10": { kind: "drain", queue: "drain10", concurrency: 10, jobs: 5_000 * scale },
    "drain, concurrency 100": { kind: "drain", queue: "drain100", concurrency: 100, jobs: 5_000 * scale },
  };
}

/** By how much ours is to be faster than a peer, where there is a goal. */
function goalOf(row: string, peer: string): number | undefined {
  if (row.startsWith("drain")) return { BullMQ: 1.5, "pg-boss": 5 }[peer];
  return row.startsWith("create in batches") && peer === "BullMQ" ? 2 : undefined;
}

async function rates({ quick, say }: Options, figures: Figures): Promise<void> {
  const rows = Object.entries(tasks(quick));
  const repeats = quick ? 1 : 3;
  const found = new Map<string, number[]>();
  for (let repeat = 0; repeat <= repeats; repeat += 1) {
    say(repeat === 0 ? "rates, warm-up" : `rates, round ${repeat} of ${repeats}`);
    for (const [row, task] of rows)
      for (const contender of contenders) {
        const [rate = Number.NaN] = await contender.perform(task);
        if (repeat > 0) found.set(key(row, contender), [...(found.get(key(row, contender)) ?? []), rate]);
      }
  }
  console.log("\nJobs per second (ours as a multiple)");
  printTable(
    ["", ...contenders.map(({ name }) => name)],
    rows.map(([row]) => [row, ...contenders.map((contender) => cell(row, contender))]),
  );
  writePlot(fileURLToPath(new URL("../../results/jobs.svg", import.meta.url)), {
    title: "Jobs per second, no-op handler",
    subtitle: "bare: the fenced writes that Trellis needs, by hand",
    categories: rows.map(([row]) => row),
    series: contenders.map((contender) => ({
      name: contender.name,
      values: rows.map(([row]) => Math.round(median(found.get(key(row, contender)) ?? []))),
    })),
    unit: "jobs/s",
  });

  function key(row: string, { name }: Contender): string {
    return `${row}, ${name}`;
  }

  function cell(row: string, contender: Contender): string {
    const ours = found.get(`${row}, trellis`) ?? [];
    const { name } = contender;
    const theirs = found.get(key(row, contender)) ?? [];
    const value = Math.round(median(theirs));
    if (name === "trellis") {
      figures[`${row}, trellis`] = { value, unit: "jobs/s", ok: true };
      return String(value);
    }
    const ratio = median(ours.map((rate, round) => rate / (theirs[round] ?? Number.NaN)));
    const goal = goalOf(row, name);
    figures[`${row}, ${name}`] = {
      value: Math.round(median(ours)),
      unit: "jobs/s",
      baseline: name,
      ratio: Number(ratio.toFixed(3)),
      ...(goal === undefined ? {} : { goal: `at least ${goal} x` }),
      ok: goal === undefined || ratio >= goal,
    };
    return `${value} (${ratio.toFixed(2)})`;
  }
}

async function latency({ quick, say }: Options, figures: Figures): Promise<void> {
  const rows: string[][] = [];
  for (const contender of contenders) {
    say(`latency at 200 jobs/s, ${contender.name}`);
    const times = await contender.perform({ kind: "latency", jobs: quick ? 400 : 2_000 });
    const parts = { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
    for (const [part, value] of Object.entries(parts))
      figures[`latency ${part}, ${contender.name}`] = {
        value: Number(value.toFixed(2)),
        unit: "ms",
        ok: true,
      };
    rows.push([contender.name, parts.p50.toFixed(2), parts.p99.toFixed(2)]);
  }
  console.log("\nFrom create to handler at 200 jobs/s, ms");
  printTable(["", "p50", "p99"], rows);
}

async function memory({ quick, say }: Options, figures: Figures): Promise<void> {
  const rows: string[][] = [];
  for (const contender of contenders) {
    say(`memory, ${contender.name}`);
    const [rss = 0, grown = 0] = await contender.perform({ kind: "memory", jobs: quick ? 2_000 : 20_000 });
    figures[`resident memory, ${contender.name}`] = { value: Math.round(rss), unit: "MiB", ok: true };
    figures[`heap growth, ${contender.name}`] = { value: Number(grown.toFixed(1)), unit: "MiB", ok: true };
    rows.push([contender.name, rss.toFixed(0), grown.toFixed(1)]);
  }
  console.log(
    `\nMemory of the process, MiB: resident, and growth of the heap over ${quick ? "2 000" : "20 000"} jobs`,
  );
  printTable(["", "resident", "growth"], rows);
}

/** A service among very many jobs that are over: ours alone, since the goals are absolute. */
async function finished({ quick, say }: Options, figures: Figures): Promise<void> {
  const [ours] = contenders;
  if (ours === undefined) return;
  const jobs = quick ? 20_000 : 1_000_000;
  say(`${jobs} finished jobs`);
  const [growth = 0, lookBefore = 0, look = 0, startBefore = 0, start = 0] = await ours.perform({
    kind: "finished",
    jobs,
  });
  const add = (name: string, value: number, unit: string, most: number) => {
    figures[`${name}, ${jobs} finished jobs`] = {
      value: Number(value.toFixed(2)),
      unit,
      goal: `at most ${Number(most.toFixed(1))} ${unit}`,
      ok: value <= most,
    };
  };
  add("heap growth of a service", growth, "MiB", 10);
  add("get by id, p50", look, "ms", 5);
  // What differs by less is the machine.
  add("start of a service", start, "ms", startBefore * 1.5 + 20);
  console.log(`\nA service before and after ${jobs} finished jobs`);
  printTable(
    ["", "before", "after"],
    [
      ["get by id, p50, ms", lookBefore.toFixed(2), look.toFixed(2)],
      ["start, ms", startBefore.toFixed(0), start.toFixed(0)],
      ["heap, MiB", "0", growth.toFixed(1)],
    ],
  );
}
