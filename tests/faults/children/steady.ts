import { createInterface } from "node:readline";
import { TrellisClient } from "@trellis/runtime";
import { workApp } from "../contract.ts";

/** A caller that calls whenever it is told to, and says how that went. */
const client = await TrellisClient.connect({ participant: workApp, runtime: { log: false } }).orThrow();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "stop") break;
  const started = performance.now();
  const result = await client.rpc.work.count({ n: Number(line) }, { timeout: 2_000 });
  const what = result.isOk() ? "ok" : `${result.error.type} ${result.error.message}`;
  console.log(`call ${line} ${what} ${Math.round(performance.now() - started)}`);
}
await client.close();
process.stdin.destroy();
