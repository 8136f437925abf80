import { TrellisClient } from "@trellis/runtime";
import { workApp } from "../contract.ts";

/** A connect that fails, one that is aborted, and one that works, all in one process. */
const participant = workApp;
const runtime = { log: false } as const;
const failed = await TrellisClient.connect({
  participant,
  runtime,
  trellisUrl: "http://127.0.0.1:9",
  timeout: 400,
});
console.log(`failed ${failed.isErr() && failed.error.type}`);
const leaving = new AbortController();
const aborted = TrellisClient.connect({ participant, runtime, signal: leaving.signal });
leaving.abort();
const result = await aborted;
console.log(`aborted ${result.isErr() && "code" in result.error && result.error.code}`);
const client = await TrellisClient.connect({ participant, runtime }).orThrow();
console.log(`works ${(await client.rpc.work.echo({ text: "x" })).isOk()}`);
await client.close();
console.log("closed");
