// RPC: ours against the broker client's own request, against ours without coalescing, and against
// @nats-io/services; the same machine, the same run, interleaved repeats, medians, ratios to raw.

import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { type Figures, median, percentile } from "../report/figures.js";
import { writePlot } from "../report/plot.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { type Bed, makeBed, memoryOf } from "./bed.js";
import { itemOf } from "./contract.js";
import { idleMemory } from "./idle-memory.js";
import { latencies, throughput } from "./measure.js";

const inFlights = [1, 16, 64, 256] as const;
const sizes = [128, 4096] as const;
const goals: Record<string, number> = { "128@64": 2.5, "128@256": 3.5, "4096@64": 1.0 };

type Variant = "raw" | "trellis" | "alone" | "services";
type Call = () => PromiseLike<unknown>;

const opts = options();
const bed = await makeBed();
try {
  const figures: Figures = {};
  await compare(bed, opts, figures);
  await sequential(bed, opts, figures);
  await slowHandlers(bed, opts, figures);
  await memory(bed, opts, figures);
  finish("rpc", opts, figures);
} finally {
  await bed[Symbol.asyncDispose]();
}

function callsOf(bed: Bed, bytes: number): Record<Variant, Call> {
  const item = itemOf(bytes);
  const raw = new TextEncoder().encode(JSON.stringify(item));
  const { echo } = bed.client.rpc;
  return {
    raw: () => bed.nats.request("raw.echo", raw, { timeout: 10_000 }),
    trellis: () => echo.item(item).orThrow(),
    alone: () => echo.alone(item).orThrow(),
    services: () => bed.nats.request("services.echo", raw, { timeout: 10_000 }),
  };
}

async function compare(bed: Bed, { quick, say }: Options, figures: Figures): Promise<void> {
  const repeats = quick ? 3 : 7;
  const seconds = quick ? 0.15 : 0.5;
  const rates = new Map<string, number[]>();
  for (let repeat = -1; repeat < repeats; repeat++) {
    say(`throughput, round ${repeat + 1} of ${repeats}${repeat < 0 ? " (warm-up)" : ""}`);
    for (const bytes of sizes) {
      const calls = callsOf(bed, bytes);
      for (const inFlight of inFlights) {
        for (const variant of Object.keys(calls) as Variant[]) {
          const guess = median(rates.get(key(variant, bytes, inFlight)) ?? [4_000]);
          const rate = await throughput(calls[variant], inFlight, Math.max(200, Math.round(guess * seconds)));
          if (repeat >= 0)
            rates.set(key(variant, bytes, inFlight), [
              ...(rates.get(key(variant, bytes, inFlight)) ?? []),
              rate,
            ]);
        }
      }
    }
  }
  reportRates(rates, figures);
}

function key(variant: Variant, bytes: number, inFlight: number): string {
  return `${variant} ${bytes}@${inFlight}`;
}

function reportRates(rates: ReadonlyMap<string, number[]>, figures: Figures): void {
  const names: Record<Variant, string> = {
    raw: "nats-core request",
    trellis: "trellis",
    alone: "trellis, not coalesced",
    services: "@nats-io/services",
  };
  const cases = sizes.flatMap((bytes) => inFlights.map((inFlight) => ({ bytes, inFlight })));
  const rows: string[][] = [];
  for (const variant of Object.keys(names) as Variant[]) {
    const row = [names[variant]];
    for (const { bytes, inFlight } of cases) {
      // Pair by pair: the machine's speed drifts, neighbours in time share it.
      const mine = rates.get(key(variant, bytes, inFlight)) ?? [];
      const raw = rates.get(key("raw", bytes, inFlight)) ?? [];
      const ratio = median(mine.map((rate, index) => rate / (raw[index] ?? Number.NaN)));
      const goal = variant === "trellis" ? goals[`${bytes}@${inFlight}`] : undefined;
      figures[`rpc ${names[variant]} ${bytes} B, ${inFlight} in flight`] = {
        value: Math.round(median(mine)),
        unit: "calls/s",
        baseline: `rpc ${names.raw} ${bytes} B, ${inFlight} in flight`,
        ratio: Number(ratio.toFixed(3)),
        ...(goal === undefined ? {} : { goal: `at least ${goal} x` }),
        ok: goal === undefined || ratio >= goal,
      };
      row.push(`${(median(mine) / 1_000).toFixed(1)}k (${ratio.toFixed(2)})`);
    }
    rows.push(row);
  }
  console.log("\nThousand calls per second (ratio to nats-core request)");
  printTable(["", ...cases.map(({ bytes, inFlight }) => `${bytes} B @ ${inFlight}`)], rows);
  writePlot(join(resultsFolder(), "rpc.svg"), {
    title: "RPC throughput, as a ratio to nats-core request",
    subtitle: "medians of interleaved rounds; more is better; bytes @ calls in flight",
    categories: cases.map(({ bytes, inFlight }) => `${bytes} B @ ${inFlight}`),
    series: (Object.keys(names) as Variant[]).map((variant) => ({
      name: names[variant],
      values: cases.map(
        ({ bytes, inFlight }) =>
          figures[`rpc ${names[variant]} ${bytes} B, ${inFlight} in flight`]?.ratio ?? 0,
      ),
    })),
    unit: "x",
  });
}

async function sequential(bed: Bed, { quick, say }: Options, figures: Figures): Promise<void> {
  const rounds = quick ? 4 : 10;
  const calls = callsOf(bed, 128);
  const ratios: number[] = [];
  const p50s: number[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`sequential latency, round ${round + 1} of ${rounds}`);
    const raw = percentile(await latencies(calls.raw, 1_000), 0.5);
    const mine = percentile(await latencies(calls.trellis, 1_000), 0.5);
    ratios.push(mine / raw);
    p50s.push(mine);
  }
  const ratio = median(ratios);
  figures["rpc sequential p50"] = {
    value: Number(median(p50s).toFixed(4)),
    unit: "ms",
    baseline: "nats-core request p50",
    ratio: Number(ratio.toFixed(3)),
    goal: "at most 1.15 x",
    ok: ratio <= 1.15,
  };
  console.log(`\nSequential p50: ${median(p50s).toFixed(3)} ms, ${ratio.toFixed(2)} x nats-core request`);
}

async function slowHandlers(bed: Bed, { quick, say }: Options, figures: Figures): Promise<void> {
  say("5 ms handlers on two replicas");
  await bed.addProvider("2");
  const item = itemOf(128);
  const seconds = quick ? 1 : 3;
  const rows: string[][] = [];
  for (const inFlight of [64, 256]) {
    const counts = new Map<string, number>();
    const calls = Math.round((inFlight / 0.006) * seconds);
    const ours = await throughput(
      async () => {
        const { replica } = await bed.client.rpc.echo.slow(item).orThrow();
        counts.set(replica, (counts.get(replica) ?? 0) + 1);
      },
      inFlight,
      calls,
    );
    const raw = await throughput(
      () => bed.nats.request("raw.slow", "", { timeout: 10_000 }),
      inFlight,
      calls,
    );
    const shares = [...counts.values()];
    const share = Math.min(...shares) / calls;
    const even = counts.size === 2 && share > 0.3;
    figures[`rpc 5 ms handler, two replicas, ${inFlight} in flight`] = {
      value: Math.round(ours),
      unit: "calls/s",
      baseline: "nats-core request",
      ratio: Number((ours / raw).toFixed(3)),
      goal: "the smaller share of two replicas over 30 %",
      ok: even,
    };
    rows.push([
      `${inFlight}`,
      Math.round(ours).toString(),
      Math.round(raw).toString(),
      (ours / raw).toFixed(2),
      `${(share * 100).toFixed(0)} %`,
    ]);
  }
  console.log("\nHandlers of 5 ms, two replicas");
  printTable(["in flight", "trellis/s", "raw/s", "ratio", "smaller share"], rows);
}

async function memory(bed: Bed, { quick, say }: Options, figures: Figures): Promise<void> {
  const total = quick ? 100_000 : 1_000_000;
  say(`memory over ${total} calls`);
  const provider = await bed.addProvider("3", false);
  const call = callsOf(bed, 128).trellis;
  await throughput(call, 64, Math.min(total, 200_000));
  const before = await memories(provider);
  const started = performance.now();
  await throughput(call, 64, total);
  const after = await memories(provider);
  const grown = {
    caller: growth(before.caller, after.caller),
    provider: growth(before.provider, after.provider),
  };
  for (const side of ["caller", "provider"] as const) {
    // The heap after a collection says what is kept; the resident size also what V8 leaves itself as room.
    figures[`rpc ${side} heap growth over ${total} calls`] = {
      value: Number(grown[side].heap.toFixed(1)),
      unit: "MiB",
      goal: "at most 10 MiB",
      ok: grown[side].heap <= 10,
    };
  }
  const idle = await idleMemory(bed.trellis, quick ? 3_000 : 10_000);
  figures["rpc idle service memory"] = {
    value: Number(idle.toFixed(1)),
    unit: "MiB",
    goal: "at most 95 MiB",
    ok: idle <= 95,
  };
  console.log(
    `\nMemory over ${total} calls (${((performance.now() - started) / 1_000).toFixed(0)} s): heap of the caller ${grown.caller.heap.toFixed(1)} MiB, of the provider ${grown.provider.heap.toFixed(1)} MiB; resident ${grown.caller.rss.toFixed(1)} and ${grown.provider.rss.toFixed(1)} MiB; an idle service takes ${idle.toFixed(0)} MiB`,
  );
}

interface Memory {
  readonly rss: number;
  readonly heap: number;
}

async function memories(provider: ChildProcess): Promise<{ caller: Memory; provider: Memory }> {
  globalThis.gc?.();
  const { rss, heapUsed: heap } = process.memoryUsage();
  return { caller: { rss, heap }, provider: await memoryOf(provider) };
}

/** MiB. */
function growth(before: Memory, after: Memory): Memory {
  return { rss: (after.rss - before.rss) / 2 ** 20, heap: (after.heap - before.heap) / 2 ** 20 };
}

function resultsFolder(): string {
  return fileURLToPath(new URL("../../results", import.meta.url));
}
