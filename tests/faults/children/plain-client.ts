import { TrellisClient } from "@trellis/runtime";
import { workApp } from "../contract.ts";

/** A script as people write it: connect, call, close. It must end by itself. */
const client = await TrellisClient.connect({ participant: workApp, runtime: { log: false } }).orThrow();
const { text } = (await client.rpc.work.echo({ text: "from a script" })).orThrow();
// One that is given up: nothing of it may hold the process.
await client.rpc.work.slow({ n: 1, ms: 20_000 }, { timeout: 50 });
await client.close();
console.log(`closed ${text}`);
