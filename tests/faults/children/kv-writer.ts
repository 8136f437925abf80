import { createInterface } from "node:readline";
import { TrellisService } from "@trellis/runtime/service";
import { dataService } from "../data-contract.ts";

/** Puts ever larger numbers under many keys, and says what was confirmed and what failed, until it is told to stop. */
const service = await TrellisService.connect({ participant: dataService, runtime: { log: false } }).orThrow();
const { counters } = service.kv;
let going = true;

async function worker(at: number): Promise<void> {
  for (let n = 1; going; n += 1) {
    const result = await counters.put(`k${at}`, { n }, { timeout: 2_000 });
    if (result.isOk()) console.log(`done k${at} ${n} ${result.value.revision}`);
    else {
      const { error } = result;
      console.log(`failed k${at} ${n} ${error.type}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const workers = Array.from({ length: 12 }, (_, at) => worker(at));
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) if (line === "stop") break;
going = false;
await Promise.all(workers);
console.log("finished");
await service.stop();
process.stdin.destroy();
