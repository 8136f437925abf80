import { defineService, job } from "@trellis/contract";
import { silentLogger } from "@trellis/runtime/node";
import { TrellisService } from "@trellis/runtime/service";
import { Type } from "typebox";
import type { System } from "./system.js";

const queue = () => job({ payload: Type.Object({ at: Type.Number() }) });
const participant = defineService("bench.jobs", {
  jobs: {
    single: queue(),
    batch: queue(),
    drain1: queue(),
    drain10: queue(),
    drain100: queue(),
    latency: queue(),
    memory: queue(),
  },
});

const connect = () => TrellisService.connect({ participant, runtime: { log: silentLogger } }).orThrow();

/** A service with its workers, as it is deployed: contract, validation, fences, health. Address from the environment. */
export async function trellis(): Promise<System> {
  const maker = await connect();
  await maker.start();
  return {
    create: (name, payload) => maker.jobs[name].create(payload).orThrow(),
    createMany: async (name, payloads) => {
      for (const ref of await maker.jobs[name].createMany(payloads).orThrow()) ref.orThrow();
    },
    work: async (name, concurrency, handle) => {
      const worker = await connect();
      worker.jobs[name].handle(({ job }) => handle(job.payload), { concurrency });
      await worker.start();
      return () => worker.stop();
    },
    lookUp: (created) => (created as { get(): { orThrow(): Promise<unknown> } }).get().orThrow(),
    startUp: async () => {
      const worker = await connect();
      worker.jobs.latency.handle(() => {});
      await worker.start();
      const started = performance.now();
      await worker.stop();
      return started;
    },
    close: () => maker.stop(),
  };
}
