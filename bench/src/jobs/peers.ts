import { Queue, Worker } from "bullmq";
import PgBoss from "pg-boss";
import type { Payload, System } from "./system.js";
import { queueNames } from "./system.js";

/** Finished jobs are kept, as ours are: their history is part of what is compared. */
export async function bullmq(port: number): Promise<System> {
  const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
  const queues = new Map(queueNames.map((name) => [name as string, new Queue(name, { connection })]));
  for (const queue of queues.values()) await queue.waitUntilReady();
  const queueOf = (name: string): Queue => {
    const queue = queues.get(name);
    if (queue === undefined) throw new Error(`no queue ${name}`);
    return queue;
  };
  return {
    create: (queue, payload) => queueOf(queue).add("job", payload),
    createMany: (queue, payloads) => queueOf(queue).addBulk(payloads.map((data) => ({ name: "job", data }))),
    work: async (queue, concurrency, handle) => {
      const worker = new Worker<Payload>(queue, async ({ data }) => handle(data), {
        connection,
        concurrency,
      });
      await worker.waitUntilReady();
      return () => worker.close();
    },
    close: async () => {
      for (const queue of queues.values()) await queue.close();
    },
  };
}

export async function pgBoss(port: number): Promise<System> {
  const boss = new PgBoss({ host: "127.0.0.1", port, user: "bench", database: "postgres" });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  for (const name of queueNames) await boss.createQueue(name);
  return {
    create: (queue, payload) => boss.send(queue, payload),
    createMany: (queue, payloads) => boss.insert(payloads.map((data) => ({ name: queue, data }))),
    work: async (queue, concurrency, handle) => {
      // Its concurrency is the size of its batch; half a second is its shortest poll, so a full batch asks for the next.
      let id: string | undefined;
      id = await boss.work<Payload>(
        queue,
        { batchSize: concurrency, pollingIntervalSeconds: 0.5 },
        async (jobs) => {
          for (const { data } of jobs) handle(data);
          if (id !== undefined && jobs.length === concurrency) boss.notifyWorker(id);
        },
      );
      return () => boss.offWork(queue);
    },
    close: () => boss.stop({ graceful: false }),
  };
}
