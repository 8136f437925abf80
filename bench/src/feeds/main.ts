// Feeds: ours (authenticated, validated, with flow control) against core publish and subscribe of the broker client, of
// bytes and of JSON by hand; the same machine, the same run, interleaved repeats, medians, ratios. Then what idle
// sessions cost, and whether memory stays where it is over a million items.

import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { type Figures, median } from "../report/figures.js";
import { finish, type Options, options } from "../report/run.js";
import { printTable } from "../report/table.js";
import { memoryOf } from "../rpc/bed.js";
import { type FeedBed, makeFeedBed } from "./bed.js";

const goal = 0.7;
const idleSessions = 10_000;
const idleGoalMiB = 400;

type Variant = "bytes" | "json" | "trellis";
const names: Record<Variant, string> = {
  bytes: "core publish and subscribe, bytes",
  json: "core publish and subscribe, JSON",
  trellis: "feed",
};

const opts = options();
const bed = await makeFeedBed();
try {
  const figures: Figures = {};
  await compare(bed, opts, figures);
  await memory(bed, opts, figures);
  await idle(bed, opts, figures);
  finish("feeds", opts, figures);
} finally {
  await bed[Symbol.asyncDispose]();
}

/** Each takes so many items of 128 bytes, and looks at one field. */
function readers({ client, nats }: FeedBed): Record<Variant, (count: number) => Promise<void>> {
  const plain = (subject: string, look: (message: { json(): unknown }) => void) => (count: number) =>
    new Promise<void>((resolve) => {
      let left = count;
      const subscription = nats.subscribe(subject, {
        callback: (_error, message) => {
          look(message);
          left -= 1;
          if (left > 0) return;
          subscription.unsubscribe();
          resolve();
        },
      });
      nats.publish(`${subject}.start`, String(count));
    });
  return {
    bytes: plain("raw.bytes", () => {}),
    json: plain("raw.json", (message) => void message.json()),
    trellis: async (count) => {
      let left = count;
      for await (const { qty } of client.feed.stream.items({ count })) left -= qty > 0 ? 1 : 0;
      if (left !== 0) throw new Error(`${left} items are missing`);
    },
  };
}

async function compare(on: FeedBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const repeats = quick ? 3 : 7;
  const seconds = quick ? 0.5 : 1.5;
  const read = readers(on);
  const rates: Record<Variant, number[]> = { bytes: [], json: [], trellis: [] };
  for (let repeat = -1; repeat < repeats; repeat += 1) {
    say(`items, round ${repeat + 1} of ${repeats}${repeat < 0 ? " (warm-up)" : ""}`);
    for (const variant of ["bytes", "json", "trellis"] as const) {
      const count = Math.round(median(rates[variant].length > 0 ? rates[variant] : [60_000]) * seconds);
      const started = performance.now();
      await read[variant](count);
      const rate = count / ((performance.now() - started) / 1_000);
      rates[variant] = repeat < 0 ? [rate] : [...rates[variant], rate];
    }
  }
  const rows = (["bytes", "json", "trellis"] as const).map((variant) => {
    const ratio = median(rates[variant].map((rate, at) => rate / (rates.bytes[at] ?? Number.NaN)));
    const isGoal = variant === "trellis";
    figures[names[variant]] = {
      value: Math.round(median(rates[variant])),
      unit: "items/s",
      baseline: names.bytes,
      ratio: Number(ratio.toFixed(3)),
      ...(isGoal ? { goal: `at least ${goal} x` } : {}),
      ok: !isGoal || ratio >= goal,
    };
    return [names[variant], (median(rates[variant]) / 1_000).toFixed(1), ratio.toFixed(2)];
  });
  console.log("\nThousand items of 128 bytes per second");
  printTable(["", "items", "ratio"], rows);
}

async function memory(on: FeedBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const count = quick ? 200_000 : 1_000_000;
  say(`memory over ${count} items`);
  const { trellis: read } = readers(on);
  await read(50_000);
  const [before, own] = [await memoryOf(on.provider), ownHeap()];
  await read(count);
  const [after, ownAfter] = [await memoryOf(on.provider), ownHeap()];
  for (const [who, grown] of [
    ["provider", after.heap - before.heap],
    ["consumer", ownAfter - own],
  ] as const) {
    const value = Number((grown / 2 ** 20).toFixed(1));
    figures[`heap of the ${who} over ${count} items`] = {
      value,
      unit: "MiB",
      goal: "under 8",
      ok: value < 8,
    };
  }
}

async function idle(on: FeedBed, { say }: Options, figures: Figures): Promise<void> {
  say(`${idleSessions} idle sessions`);
  const before = await memoryOf(on.provider);
  const streams = Array.from({ length: idleSessions }, () => on.client.feed.stream.quiet());
  const started = performance.now();
  // As many at once as a service admits calls.
  for (let at = 0; at < idleSessions; at += 500) {
    await Promise.all(streams.slice(at, at + 500).map((stream) => stream.next()));
  }
  const opened = performance.now() - started;
  const ended = Promise.race(streams.map((stream) => stream.next().then(() => "an idle session ended")));
  // Two rounds of challenges.
  const lost = await Promise.race([ended, pause(22_000)]);
  if (lost !== undefined) throw new Error(lost);
  const { rss, heap } = await memoryOf(on.provider);
  const mib = Math.round(rss / 2 ** 20);
  figures[`provider with ${idleSessions} idle sessions`] = {
    value: mib,
    unit: "MiB",
    goal: `under ${idleGoalMiB}`,
    ok: mib < idleGoalMiB,
  };
  const each = Number(((heap - before.heap) / idleSessions / 1_024).toFixed(2));
  figures["heap of an idle session at its provider"] = { value: each, unit: "KiB", ok: true };
  const rate = Math.round((idleSessions * 1_000) / opened);
  figures["sessions opened in a second"] = { value: rate, unit: "sessions/s", ok: true };
  await Promise.all(streams.map((stream) => stream.return()));
  console.log(
    `\n${idleSessions} idle sessions: ${mib} MiB in all, ${each} KiB of heap each, opened ${rate} a second`,
  );
}

function ownHeap(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
