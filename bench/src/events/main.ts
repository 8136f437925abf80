// Events: ours (signed, verified, validated, typed) from publish to handled and acknowledged, against publish, consume
// and ack of the nats.js client, in one process each way; the same run, interleaved repeats, medians, ratios to theirs.

import { performance } from "node:perf_hooks";
import { type Figures, median, percentile } from "../report/figures.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { latencies, throughput } from "../rpc/measure.js";
import { type EventsBed, makeEventsBed, type Pass } from "./bed.js";

const inFlights = [1, 64, 256] as const;
const throughputGoal = 1;
const latencyGoalMs = 0.4;
const memoryGoalMiB = 16;
const variants = ["theirs", "ours"] as const;
type Variant = (typeof variants)[number];

let next = 0;
const opts = options();
const bed = await makeEventsBed();
try {
  const figures: Figures = {};
  await compare(bed, opts, figures);
  await oneAtATime(bed, opts, figures);
  await memory(bed, opts, figures);
  finish("events", opts, figures);
} finally {
  await bed[Symbol.asyncDispose]();
}

function passing(pass: Pass): () => Promise<void> {
  return () => pass(next++);
}

async function compare(on: EventsBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const repeats = quick ? 5 : 9;
  const seconds = quick ? 0.3 : 1;
  const rates = new Map<string, number[]>();
  const name = (variant: Variant, inFlight: number) =>
    `events, ${inFlight} in flight${variant === "ours" ? "" : ", nats.js"}`;
  for (let repeat = -1; repeat < repeats; repeat++) {
    say(`events, round ${repeat + 1} of ${repeats}${repeat < 0 ? " (warm-up)" : ""}`);
    for (const inFlight of inFlights) {
      for (const variant of variants) {
        const before = rates.get(name(variant, inFlight)) ?? [];
        const events = Math.max(1_000, Math.round(median(before.length > 0 ? before : [2_000]) * seconds));
        const rate = await throughput(passing(on[variant]), inFlight, events);
        rates.set(name(variant, inFlight), repeat < 0 ? [rate] : [...before, rate]);
      }
    }
  }
  const rows = inFlights.map((inFlight) => {
    const [theirs, ours] = variants.map((variant) => rates.get(name(variant, inFlight)) ?? []);
    const ratio = median((ours ?? []).map((rate, index) => rate / (theirs?.[index] ?? Number.NaN)));
    const isGoal = inFlight === 256;
    figures[name("ours", inFlight)] = {
      value: Math.round(median(ours ?? [])),
      unit: "events/s",
      baseline: name("theirs", inFlight),
      ratio: Number(ratio.toFixed(3)),
      ...(isGoal ? { goal: `at least ${throughputGoal} x` } : {}),
      ok: !isGoal || ratio >= throughputGoal,
    };
    const thousands = (values: readonly number[] = []) => (median(values) / 1_000).toFixed(1);
    return [`${inFlight} in flight`, thousands(theirs), thousands(ours), ratio.toFixed(2)];
  });
  console.log("\nThousand events per second, from publish to handled");
  printTable(["", "nats.js", "trellis", "ratio"], rows);
}

async function oneAtATime(on: EventsBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const times: Record<Variant, number[]> = { ours: [], theirs: [] };
  for (let round = 0; round < (quick ? 3 : 9); round++) {
    say(`one at a time, round ${round + 1}`);
    for (const variant of variants) times[variant].push(...(await latencies(passing(on[variant]), 500)));
  }
  const at = (variant: Variant, share: number) => percentile(times[variant], share);
  const added = at("ours", 0.5) - at("theirs", 0.5);
  figures["events, one at a time, p50 over nats.js"] = {
    value: Number(added.toFixed(3)),
    unit: "ms",
    goal: `at most ${latencyGoalMs} ms more`,
    ok: added <= latencyGoalMs,
  };
  console.log("\nFrom publish to handled, one at a time, ms");
  const row = (share: number) => [at("theirs", share).toFixed(2), at("ours", share).toFixed(2)];
  printTable(
    ["", "nats.js", "trellis"],
    [
      ["p50", ...row(0.5)],
      ["p95", ...row(0.95)],
    ],
  );
}

async function memory(on: EventsBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const events = quick ? 50_000 : 1_000_000;
  say(`memory over ${events} events`);
  const heap = () => {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  await throughput(passing(on.ours), 256, 20_000);
  const before = heap();
  const started = performance.now();
  await throughput(passing(on.ours), 256, events);
  const grown = heap() - before;
  say(`${events} events in ${((performance.now() - started) / 1_000).toFixed(0)} s`);
  figures[`events, heap grown over ${events} events`] = {
    value: Number(grown.toFixed(1)),
    unit: "MiB",
    goal: `at most ${memoryGoalMiB} MiB`,
    ok: grown <= memoryGoalMiB,
  };
}
