import { TrellisClient } from "@trellis/runtime";
import { workApp } from "../contract.ts";

/** A caller that is killed while its call is under way. */
const client = await TrellisClient.connect({ participant: workApp, runtime: { log: false } }).orThrow();
const call = client.rpc.work.slow({ n: 1, ms: 30_000 }, { timeout: 60_000 });
console.log("calling");
await call;
