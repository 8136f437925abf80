import type { Figures } from "../report/figures.js";
import { heapUsed } from "../report/heap.js";
import type { Options } from "../report/run.js";
import { throughput } from "../rpc/measure.js";
import type { KvBed } from "./bed.js";

const goalMiB = 10;
const keys = 1_000;

/** What the heap of one that puts, gets and watches grows by: the first tenth is for what is filled once. */
export async function memory({ ours }: KvBed, { quick, say }: Options, figures: Figures): Promise<void> {
  const total = quick ? 50_000 : 1_000_000;
  say(`memory over ${total} changes, watched`);
  const watching = new AbortController();
  let seen = 0;
  let isReady = false;
  const watched = (async () => {
    for await (const change of ours.watch({ prefix: "memory/", signal: watching.signal })) {
      if (change.kind === "ready") isReady = true;
      else if (isReady) seen += 1;
    }
  })();
  while (!isReady) await new Promise((resolve) => setTimeout(resolve, 1));
  const item = { id: 1, text: "x".repeat(104) };
  let at = 0;
  const put = () => ours.put(`memory/${at++ % keys}`, item).orThrow();
  await throughput(put, 256, total / 10);
  const before = await heapUsed();
  await throughput(put, 256, total - total / 10);
  const growth = ((await heapUsed()) - before) / 2 ** 20;
  watching.abort();
  await watched.catch(() => undefined);
  if (seen === 0) throw new Error("the watch saw nothing");
  figures[`heap growth over ${total} watched changes`] = {
    value: Number(growth.toFixed(1)),
    unit: "MiB",
    goal: `at most ${goalMiB} MiB`,
    ok: growth <= goalMiB,
  };
}
