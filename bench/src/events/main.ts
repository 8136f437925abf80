// Events: signed, verified and durable, from `publish` to handled and acknowledged, against js.publish, consume and
// ack of the plain client; the same run, interleaved repeats, medians, ratios to the plain client.

import { type Figures, median, percentile } from "../report/figures.js";
import { heapUsed } from "../report/heap.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { latencies, throughput } from "../rpc/measure.js";
import { type EventsBed, makeEventsBed } from "./bed.js";

const inFlights = [64, 256] as const;
const variants = ["raw", "ours"] as const;
const goal = 1;
const latencyGoalMs = 0.4;
const growthGoalMiB = 16;

const opts = options();
const bed = await makeEventsBed();
try {
  const figures: Figures = {};
  await rates(bed, opts, figures);
  await alone(bed, opts, figures);
  await memory(bed, opts, figures);
  finish("events", opts, figures);
} finally {
  await bed[Symbol.asyncDispose]();
}

async function rates(on: EventsBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const repeats = quick ? 3 : 7;
  const events = quick ? 4_000 : 12_000;
  const found = new Map<string, number[]>();
  for (let repeat = -1; repeat < repeats; repeat++) {
    say(`events, round ${repeat + 1} of ${repeats}${repeat < 0 ? " (warm-up)" : ""}`);
    for (const inFlight of inFlights) {
      for (const variant of variants) {
        const rate = await throughput(on[variant], inFlight, events);
        const key = `${variant} ${inFlight}`;
        if (repeat >= 0) found.set(key, [...(found.get(key) ?? []), rate]);
      }
    }
  }
  const rows = inFlights.map((inFlight) => {
    const [raw = [], ours = []] = variants.map((variant) => found.get(`${variant} ${inFlight}`));
    const ratio = median(ours.map((rate, index) => rate / (raw[index] ?? Number.NaN)));
    const isGoal = inFlight === 256;
    figures[`events, ${inFlight} in flight`] = {
      value: Math.round(median(ours)),
      unit: "events/s",
      baseline: "js.publish, consume, ack",
      ratio: Number(ratio.toFixed(3)),
      ...(isGoal ? { goal: `at least ${goal} x` } : {}),
      ok: !isGoal || ratio >= goal,
    };
    return [`${inFlight} in flight`, thousands(median(raw)), thousands(median(ours)), ratio.toFixed(2)];
  });
  console.log("\nThousand events per second, published, handled and acknowledged");
  printTable(["", "raw", "trellis", "ratio"], rows);
}

async function alone(on: EventsBed, { quick, say }: Options, figures: Figures): Promise<void> {
  say("one at a time");
  const count = quick ? 500 : 3_000;
  const [raw, ours] = [[], []] as [number[], number[]];
  for (let repeat = 0; repeat < 3; repeat++) {
    raw.push(...(await latencies(on.raw, count)));
    ours.push(...(await latencies(on.ours, count)));
  }
  const [theirs, mine] = [percentile(raw, 0.5), percentile(ours, 0.5)];
  const more = mine - theirs;
  figures["events, one at a time, p50 over raw"] = {
    value: Number(more.toFixed(3)),
    unit: "ms",
    goal: `at most ${latencyGoalMs} ms`,
    ok: more <= latencyGoalMs,
  };
  console.log("\nOne at a time, ms");
  printTable(
    ["", "raw", "trellis"],
    [
      ["p50", theirs.toFixed(3), mine.toFixed(3)],
      ["p99", percentile(raw, 0.99).toFixed(3), percentile(ours, 0.99).toFixed(3)],
    ],
  );
}

/** What the heap of publisher and consumer grows by: the first tenth is for what is filled once. */
async function memory(on: EventsBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const total = quick ? 50_000 : 1_000_000;
  say(`memory over ${total} events`);
  await throughput(on.ours, 256, total / 10);
  const before = await heapUsed();
  await throughput(on.ours, 256, total - total / 10);
  const growth = ((await heapUsed()) - before) / 2 ** 20;
  figures[`heap growth over ${total} events`] = {
    value: Number(growth.toFixed(1)),
    unit: "MiB",
    goal: `at most ${growthGoalMiB} MiB`,
    ok: growth <= growthGoalMiB,
  };
}

function thousands(rate: number): string {
  return (rate / 1_000).toFixed(1);
}
