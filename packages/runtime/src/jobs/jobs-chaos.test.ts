import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openMill, planRound, runRound } from "../../../../tests/chaos/jobs/rounds.ts";
import { type JobsBed, startJobs } from "./jobs.test-kit.ts";

let bed: JobsBed;
beforeAll(async () => {
  bed = await startJobs();
});
afterAll(() => bed[Symbol.asyncDispose]());

// Long runs with other seeds: `npm run chaos -- jobs`.
const seeds = Array.from({ length: 24 }, (_, index) => 4_200 + index);

describe("jobs whose makers and workers are killed between any two writes", () => {
  it("come to exactly one end each, and leave nothing behind", { timeout: 120_000 }, async () => {
    const failed: string[] = [];
    let deaths = 0;
    const left = [...seeds];
    const lane = async () => {
      for (let seed = left.pop(); seed !== undefined; seed = left.pop()) {
        const plan = planRound(seed);
        try {
          if (await runRound(await openMill(bed), plan)) deaths += 1;
        } catch (error) {
          failed.push(`${String(error)} in ${JSON.stringify(plan)}`);
        }
      }
    };
    await Promise.all([lane(), lane(), lane(), lane()]);
    expect(failed).toEqual([]);
    expect(deaths).toBeGreaterThan(seeds.length / 3);
  });
});
