// Object store: ours against @nats-io/obj with the platform's own SHA-256; the same server, the same stream, the same
// run, interleaved repeats, medians, ratios to theirs. First each reads what the other wrote.

import { performance } from "node:perf_hooks";
import { type Figures, median } from "../report/figures.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { throughput } from "../rpc/measure.js";
import { makeStoreBed, type StoreBed } from "./bed.js";

const MiB = 2 ** 20;

const opts = options();
const bed = await makeStoreBed();
try {
  const figures: Figures = {};
  await readEachOther(bed, figures);
  await large(bed, opts, figures);
  await small(bed, opts, figures);
  finish("store", opts, figures);
} finally {
  await bed[Symbol.asyncDispose]();
}

function bytesOf(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 2_654_435_761) >>> 24;
  return bytes;
}

async function readEachOther({ ours, theirs }: StoreBed, figures: Figures): Promise<void> {
  // Their client takes no names beyond Latin-1, and writes those between otherwise than the other official ones.
  const names = [
    "a.b",
    "a_b",
    "dir/sub/file.txt",
    " leading",
    "tab\t",
    "a",
    "ab",
    "abc",
    "*",
    ">",
    "x".repeat(1_000),
  ];
  const bytes = bytesOf(700_000);
  let ok = true;
  for (const name of names) {
    await ours.put(`ours ${name}`, bytes, { metadata: { by: "us" }, contentType: "text/plain" }).orThrow();
    const read = await theirs.getBlob(`ours ${name}`);
    const info = await theirs.info(`ours ${name}`);
    ok &&= read !== null && Buffer.compare(read, bytes) === 0 && info?.metadata?.["by"] === "us";
    await theirs.putBlob({ name: `theirs ${name}`, metadata: { by: "them" } }, bytes);
    const entry = await ours.get(`theirs ${name}`).orThrow();
    const back = await entry?.bytes().orThrow();
    ok &&= back !== undefined && Buffer.compare(back, bytes) === 0 && entry?.info.metadata["by"] === "them";
    // Each in place of the other's.
    await theirs.putBlob({ name: `ours ${name}` }, bytes.subarray(1));
    ok &&= (await ours.head(`ours ${name}`).orThrow())?.size === bytes.length - 1;
    await theirs.delete(`ours ${name}`);
    ok &&= (await ours.head(`ours ${name}`).orThrow()) === undefined;
    await ours.delete(`theirs ${name}`).orThrow();
    ok &&=
      (await theirs.info(`theirs ${name}`))?.deleted === true &&
      (await theirs.get(`theirs ${name}`)) === null;
  }
  figures["store objects read and written by both"] = {
    value: names.length,
    unit: "objects",
    goal: "whole, and by their names",
    ok,
  };
}

async function large({ ours, theirs }: StoreBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const bytes = bytesOf(64 * MiB);
  const ways = {
    put: {
      theirs: () => theirs.putBlob({ name: "large" }, bytes),
      ours: () => ours.put("large", bytes).orThrow(),
    },
    get: {
      theirs: async () => {
        const result = await theirs.get("large");
        let size = 0;
        for await (const piece of result?.data ?? []) size += piece.length;
        await result?.error;
        return size;
      },
      ours: async () => {
        const entry = await ours.get("large").orThrow();
        let size = 0;
        for await (const piece of entry?.stream() ?? []) size += piece.length;
        return size;
      },
    },
  } as const;
  const rows: string[][] = [];
  for (const what of ["put", "get"] as const) {
    const rates = { theirs: [] as number[], ours: [] as number[] };
    for (let repeat = -1; repeat < (quick ? 3 : 7); repeat++) {
      say(`${what} of 64 MiB, round ${repeat + 1}${repeat < 0 ? " (warm-up)" : ""}`);
      for (const variant of ["theirs", "ours"] as const) {
        const started = performance.now();
        await ways[what][variant]();
        if (repeat >= 0) rates[variant].push(64 / ((performance.now() - started) / 1_000));
      }
    }
    const ratio = median(rates.ours.map((rate, index) => rate / (rates.theirs[index] ?? Number.NaN)));
    figures[`store ${what} of 64 MiB`] = {
      value: Math.round(median(rates.ours)),
      unit: "MiB/s",
      baseline: "@nats-io/obj, native SHA-256",
      ratio: Number(ratio.toFixed(3)),
      goal: "at least 1 x",
      ok: ratio >= 1,
    };
    rows.push([
      `${what} 64 MiB`,
      median(rates.theirs).toFixed(0),
      median(rates.ours).toFixed(0),
      ratio.toFixed(2),
    ]);
  }
  console.log("\nMiB per second");
  printTable(["", "@nats-io/obj", "trellis", "ratio"], rows);
}

async function small({ ours, theirs }: StoreBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const bytes = bytesOf(64 * 1024);
  const objects = quick ? 100 : 300;
  let at = 0;
  const key = () => `small/${at++ % 100}`;
  const ways = {
    put: {
      theirs: () => theirs.putBlob({ name: key() }, bytes),
      ours: () => ours.put(key(), bytes).orThrow(),
    },
    get: {
      theirs: () => theirs.getBlob(key()),
      ours: async () => (await ours.get(key()).orThrow())?.bytes().orThrow(),
    },
  } as const;
  const rows: string[][] = [];
  for (const what of ["put", "get"] as const) {
    for (const inFlight of [1, 16]) {
      const rates = { theirs: [] as number[], ours: [] as number[] };
      for (let repeat = -1; repeat < (quick ? 3 : 5); repeat++) {
        say(`${what} of 64 KiB, ${inFlight} at once, round ${repeat + 1}`);
        for (const variant of ["theirs", "ours"] as const) {
          const rate = await throughput(ways[what][variant], inFlight, objects);
          if (repeat >= 0) rates[variant].push(rate);
        }
      }
      const ratio = median(rates.ours.map((rate, index) => rate / (rates.theirs[index] ?? Number.NaN)));
      figures[`store ${what} of 64 KiB, ${inFlight} at once`] = {
        value: Math.round(median(rates.ours)),
        unit: "objects/s",
        baseline: "@nats-io/obj, native SHA-256",
        ratio: Number(ratio.toFixed(3)),
        ok: true,
      };
      rows.push([
        `${what} 64 KiB @ ${inFlight}`,
        median(rates.theirs).toFixed(0),
        median(rates.ours).toFixed(0),
        ratio.toFixed(2),
      ]);
    }
  }
  console.log("\nObjects per second");
  printTable(["", "@nats-io/obj", "trellis", "ratio"], rows);
}
