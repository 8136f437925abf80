import { createInterface } from "node:readline";
import { type Connection, TrellisClient } from "@trellis/runtime";
import { TrellisService } from "@trellis/runtime/service";
import { workApp, workService } from "../contract.ts";
import { plainHandlers } from "../kit.ts";

/**
 * A provider and a caller in one process that never stop calling. Told to `report`, it says what became of the
 * calls; told to `stop`, it ends. An unhandled rejection ends it with another code.
 */
const service = await TrellisService.connect({ participant: workService, runtime: { log: false } }).orThrow();
plainHandlers(service);
await service.start();
const client = await TrellisClient.connect({ participant: workApp, runtime: { log: false } }).orThrow();

for (const { name, connection } of [
  { name: "service", connection: service.connection },
  { name: "client", connection: client.connection },
])
  connection.subscribe(({ phase }) => console.log(`now ${Math.round(performance.now())} ${name} ${phase}`));

/** The broker may leave a dial without an answer for some seconds when it went down in the middle of it. */
function connected(connection: Connection): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = connection.subscribe(({ phase }) => {
      if (phase !== "connected") return;
      queueMicrotask(() => unsubscribe());
      resolve();
    });
  });
}

const outcomes: Record<string, number> = {};
let going = true;
const note = (what: string) => {
  outcomes[what] = (outcomes[what] ?? 0) + 1;
};

async function worker(n: number): Promise<void> {
  while (going) {
    const ms = (n * 7) % 40;
    const options = { timeout: 3_000 };
    const { work } = client.rpc;
    const result = await (n % 2 === 0 ? work.slow({ n, ms }, options) : work.slowAgain({ n, ms }, options));
    const kind = n % 2 === 0 ? "once" : "again";
    note(`${kind} ${result.isOk() ? "ok" : result.error.type}`);
    if (result.isErr()) await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const workers = Array.from({ length: 20 }, (_, n) => worker(n));
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "report") console.log(`report ${JSON.stringify(outcomes)}`);
  if (line === "stop") break;
}
going = false;
await Promise.all(workers);
await Promise.all([client, service].map(({ connection }) => connected(connection)));
console.log(`phase ${client.connection.status.phase} ${service.connection.status.phase}`);
const last = await client.rpc.work.echo({ text: "x" });
console.log(
  `last ${last.isOk() ? "true" : `${last.error.type} ${last.error.message} ${JSON.stringify(last.error)}`}`,
);
await client.close();
await service.stop();
process.stdin.destroy();
