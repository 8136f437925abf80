// `npm run chaos -- jobs [--rounds 2000] [--seed <number>] [--lanes 6]`: kills makers and workers of jobs at every point.
import process from "node:process";
import { parseArgs } from "node:util";
import { startJobs } from "../../../packages/runtime/src/jobs/jobs.test-kit.ts";
import { openMill, planRound, runRound } from "./rounds.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "2000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    lanes: { type: "string", default: "6" },
  },
});
const first = Number(values.seed);
const rounds = Number(values.rounds);
process.stdout.write(`seed ${first}, ${rounds} rounds\n`);
const bed = await startJobs();
let next = 0;
let failures = 0;
let deaths = 0;
let done = 0;

async function lane(): Promise<void> {
  while (next < rounds) {
    const plan = planRound(first + next);
    next += 1;
    // A deployment of its own for each round: what one leaves does not hide what another forgot.
    const mill = await openMill(bed);
    try {
      if (await runRound(mill, plan)) deaths += 1;
    } catch (error) {
      failures += 1;
      process.stdout.write(
        `round with seed ${plan.seed} failed: ${String(error)}\n${JSON.stringify(plan)}\n`,
      );
    }
    await bed.manager.streams.delete(mill.layout.stream.name);
    await bed.manager.streams.delete(mill.layout.bucket.name);
    done += 1;
    if (done % 100 === 0) process.stdout.write(`${done} rounds, ${failures} failed\n`);
  }
}

const began = performance.now();
await Promise.all(Array.from({ length: Number(values.lanes) }, lane));
await bed[Symbol.asyncDispose]();
process.stdout.write(
  `${rounds} rounds in ${Math.round((performance.now() - began) / 1_000)} s, ${deaths} deaths, ${failures} failed\n`,
);
process.exitCode = failures === 0 ? 0 : 1;
