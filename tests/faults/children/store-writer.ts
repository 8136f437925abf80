import { createInterface } from "node:readline";
import { TrellisService } from "@trellis/runtime/service";
import { dataService } from "../data-contract.ts";

/** Puts one object again and again, each time all of one byte, and says what became of it, until it is told to stop. */
const bytes = Number(process.argv[2]);
const service = await TrellisService.connect({
  participant: dataService,
  runtime: { log: false, timeout: 4_000 },
}).orThrow();
const blobs = await service.store.blobs.open().orThrow();
let going = true;

async function* pieces(fill: number): AsyncGenerator<Uint8Array> {
  for (let left = bytes; left > 0; left -= 128 * 1024) {
    yield new Uint8Array(Math.min(left, 128 * 1024)).fill(fill);
    await new Promise(setImmediate);
  }
}

async function write(): Promise<void> {
  for (let round = 1; going; round += 1) {
    console.log(`begun ${round}`);
    const result = await blobs.put("big", pieces(round % 256));
    console.log(
      result.isOk() ? `done ${round} ${result.value.digest}` : `failed ${round} ${result.error.type}`,
    );
    if (result.isErr()) await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const writing = write();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) if (line === "stop") break;
going = false;
await writing;
console.log("finished");
await service.stop();
process.stdin.destroy();
