// Key-value: ours (validated, typed) against @nats-io/kv with direct gets and JSON by hand; the same server, the same
// run, interleaved repeats, medians, ratios to theirs.

import { performance } from "node:perf_hooks";
import { type Figures, median } from "../report/figures.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { throughput } from "../rpc/measure.js";
import { type KvBed, makeKvBed } from "./bed.js";
import { memory } from "./memory.js";

const inFlights = [1, 64, 256] as const;
const sizes = [128, 4096] as const;
const goal = 1.5;
const keys = 1_000;

type Variant = "theirs" | "ours";
type Call = () => PromiseLike<unknown>;

const opts = options();
const bed = await makeKvBed();
try {
  const figures: Figures = {};
  await compare(bed, opts, figures);
  await initialState(bed, opts, figures);
  await memory(bed, opts, figures);
  finish("kv", opts, figures);
} finally {
  await bed[Symbol.asyncDispose]();
}

interface Measured {
  readonly what: "get" | "put";
  readonly bytes: number;
  readonly calls: Record<Variant, Call>;
}

function measured({ ours, theirs }: KvBed): Measured[] {
  return sizes.flatMap((bytes): Measured[] => {
    const item = { id: 1, text: "x".repeat(bytes - 24) };
    let at = 0;
    const key = () => `k${bytes}-${at++ % keys}`;
    return [
      {
        what: "put",
        bytes,
        calls: {
          theirs: () => theirs.put(key(), JSON.stringify(item)),
          ours: () => ours.put(key(), item).orThrow(),
        },
      },
      {
        what: "get",
        bytes,
        calls: {
          theirs: async () => (await theirs.get(key()))?.json(),
          ours: () => ours.get(key()).orThrow(),
        },
      },
    ];
  });
}

async function compare(on: KvBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const repeats = quick ? 3 : 7;
  const seconds = quick ? 0.2 : 0.6;
  const cases = measured(on).flatMap((one) => inFlights.map((inFlight) => ({ ...one, inFlight })));
  const rates = new Map<string, number[]>();
  const name = (variant: Variant, one: (typeof cases)[number]) =>
    `kv ${one.what} ${one.bytes} B, ${one.inFlight} in flight${variant === "ours" ? "" : ", @nats-io/kv"}`;
  for (let repeat = -1; repeat < repeats; repeat++) {
    say(`gets and puts, round ${repeat + 1} of ${repeats}${repeat < 0 ? " (warm-up)" : ""}`);
    for (const one of cases) {
      for (const variant of ["theirs", "ours"] as const) {
        const before = rates.get(name(variant, one)) ?? [];
        const calls = Math.max(keys, Math.round(median(before.length > 0 ? before : [4_000]) * seconds));
        const rate = await throughput(one.calls[variant], one.inFlight, calls);
        rates.set(name(variant, one), repeat < 0 ? [rate] : [...before, rate]);
      }
    }
  }
  const rows = cases.map((one) => {
    const ours = rates.get(name("ours", one)) ?? [];
    const theirs = rates.get(name("theirs", one)) ?? [];
    const ratio = median(ours.map((rate, index) => rate / (theirs[index] ?? Number.NaN)));
    const isGoal = one.inFlight === 64;
    figures[name("ours", one)] = {
      value: Math.round(median(ours)),
      unit: "calls/s",
      baseline: name("theirs", one),
      ratio: Number(ratio.toFixed(3)),
      ...(isGoal ? { goal: `at least ${goal} x` } : {}),
      ok: !isGoal || ratio >= goal,
    };
    return [
      `${one.what} ${one.bytes} B @ ${one.inFlight}`,
      (median(theirs) / 1_000).toFixed(1),
      (median(ours) / 1_000).toFixed(1),
      ratio.toFixed(2),
    ];
  });
  console.log("\nThousand calls per second");
  printTable(["", "@nats-io/kv", "trellis", "ratio"], rows);
}

/** How long it takes to have the state of 10 000 keys, by a watch and as a list of keys. */
async function initialState(
  { ours, theirs }: KvBed,
  { quick, say }: Options,
  figures: Figures,
): Promise<void> {
  say("the state of 10 000 keys");
  const item = { id: 1, text: "x".repeat(104) };
  let at = 0;
  await throughput(() => ours.put(`state/${at++}`, item).orThrow(), 256, 10_000);
  at = 0;
  await throughput(() => theirs.put(`state.${at++}`, JSON.stringify(item)), 256, 10_000);
  const ways: Record<string, Record<Variant, () => Promise<number>>> = {
    watch: {
      ours: async () => {
        let count = 0;
        for await (const change of ours.watch({ prefix: "state/" })) {
          if (change.kind === "ready") break;
          count += 1;
        }
        return count;
      },
      theirs: async () => {
        let count = 0;
        const watch = await theirs.watch({ key: "state.>" });
        for await (const entry of watch) {
          entry.json();
          count += 1;
          if (count === 10_000) break;
        }
        return count;
      },
    },
    keys: {
      ours: async () => (await ours.keys("state/").collect().orThrow()).length,
      theirs: async () => {
        let count = 0;
        for await (const _ of await theirs.keys("state.>")) count += 1;
        return count;
      },
    },
  };
  const rows: string[][] = [];
  for (const [what, way] of Object.entries(ways)) {
    const times: Record<Variant, number[]> = { ours: [], theirs: [] };
    for (let repeat = 0; repeat < (quick ? 3 : 7); repeat++) {
      for (const variant of ["theirs", "ours"] as const) {
        const started = performance.now();
        const count = await way[variant]();
        if (count !== 10_000) throw new Error(`${what} of ${variant}: ${count} keys`);
        times[variant].push(performance.now() - started);
      }
    }
    const ratio = median(times.theirs) / median(times.ours);
    figures[`kv ${what} of 10 000 keys`] = {
      value: Number(median(times.ours).toFixed(1)),
      unit: "ms",
      baseline: "@nats-io/kv",
      ratio: Number(ratio.toFixed(3)),
      ok: true,
    };
    rows.push([what, median(times.theirs).toFixed(0), median(times.ours).toFixed(0), ratio.toFixed(2)]);
  }
  console.log("\nThe state of 10 000 keys, ms");
  printTable(["", "@nats-io/kv", "trellis", "speed-up"], rows);
}
