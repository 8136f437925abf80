// The other side of the benchmark, in a process of its own: our producers, and a bare publisher on a server of its own.
import { connect } from "@nats-io/transport-node";
import { TrellisService } from "@trellis/runtime/service";
import { itemOf } from "../rpc/contract.js";
import { streamService } from "./contract.js";

const item = itemOf(128);
const bytes = new TextEncoder().encode(JSON.stringify(item));

const runtime = { log: false } as const;
const service = await TrellisService.connect({ participant: streamService, runtime }).orThrow();
service.handle.feed.stream.items(async ({ input, emit }) => {
  for (let left = input.count; left > 0; left -= 1) await emit(item);
});
service.handle.feed.stream.quiet(async ({ emit, signal }) => {
  await emit(1);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
});
await service.start();

const [plainUrl = ""] = process.argv.slice(2);
const nats = await connect({ servers: plainUrl });
/** What the publisher may be ahead of the server by: the client itself would keep it all. */
const ahead = 4_096;
for (const [subject, payload] of [
  ["raw.bytes", () => bytes],
  ["raw.json", () => JSON.stringify(item)],
] as const) {
  nats.subscribe(`${subject}.start`, {
    callback: (_error, message) => void publish(subject, payload, Number(message.string())),
  });
}
await nats.flush();

async function publish(subject: string, payload: () => Uint8Array | string, count: number): Promise<void> {
  let flushed = Promise.resolve();
  for (let sent = 0; sent < count; sent += 1) {
    nats.publish(subject, payload());
    if (sent % ahead !== ahead - 1) continue;
    await flushed;
    flushed = nats.flush();
  }
}

process.on("message", (message) => {
  if (message !== "memory") return;
  globalThis.gc?.();
  process.send?.({ rss: process.memoryUsage.rss(), heap: process.memoryUsage().heapUsed });
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
