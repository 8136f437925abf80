import { defineService, job } from "@trellis/contract";
import { startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import type { Payload, System } from "./peers.js";

const queue = () => job({ payload: Type.Object({ at: Type.Number() }) });
const service = defineService("bench.jobs", {
  jobs: {
    made: queue(),
    batch: queue(),
    drain1: queue(),
    drain10: queue(),
    drain100: queue(),
    latency: queue(),
  },
});
export type QueueName = keyof typeof service.jobs;

/** The whole platform as it is deployed: control plane with its picture of the jobs, validation, fences. */
export async function trellis(): Promise<System> {
  const platform = await startTrellis();
  const maker = await platform.service(service, () => undefined);
  const queueOf = (name: QueueName) => maker.jobs[name];
  return {
    name: "trellis",
    durability: "nats-server, file storage, sync interval of the platform",
    create: (name, payload) => queueOf(name).create(payload).orThrow(),
    createMany: async (name, payloads) => {
      for (const ref of await queueOf(name).createMany(payloads).orThrow()) ref.orThrow();
    },
    prepare: async () => undefined,
    work: async (name, concurrency, handle) => {
      const worker = await platform.service(service, ({ jobs }) =>
        jobs[name].handle(({ job: { payload } }: { job: { payload: Payload } }) => handle(payload), {
          concurrency,
        }),
      );
      return async () => {
        await worker.stop();
      };
    },
    [Symbol.asyncDispose]: () => platform.stop(),
  };
}
