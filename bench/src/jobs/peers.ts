import { Queue, Worker } from "bullmq";
import PgBoss from "pg-boss";
import type { QueueName } from "./ours.js";
import { startPostgres, startRedis } from "./servers.js";

export interface Payload {
  readonly at: number;
}

/** One system of jobs: a queue by name, made when it is first named. */
export interface System extends AsyncDisposable {
  readonly name: string;
  readonly durability: string;
  create(queue: QueueName, payload: Payload): Promise<unknown>;
  createMany(queue: QueueName, payloads: readonly Payload[]): Promise<unknown>;
  prepare(queue: QueueName): Promise<void>;
  /** Starts a worker; the answer stops it. */
  work(
    queue: QueueName,
    concurrency: number,
    handle: (payload: Payload) => void,
  ): Promise<() => Promise<void>>;
}

export async function bullmq(): Promise<System> {
  const server = await startRedis();
  const connection = { host: "127.0.0.1", port: server.port, maxRetriesPerRequest: null };
  const queues = new Map<string, Queue>();
  const options = { removeOnComplete: true };
  const queueOf = (name: string) => {
    const queue = queues.get(name) ?? new Queue(name, { connection });
    queues.set(name, queue);
    return queue;
  };
  return {
    name: "BullMQ",
    durability: "redis, append-only file, fsync every second",
    create: (queue, payload) => queueOf(queue).add("job", payload, options),
    createMany: (queue, payloads) =>
      queueOf(queue).addBulk(payloads.map((data) => ({ name: "job", data, opts: options }))),
    prepare: async (queue) => {
      await queueOf(queue).waitUntilReady();
    },
    work: async (queue, concurrency, handle) => {
      const worker = new Worker(queue, async ({ data }) => handle(data as Payload), {
        connection,
        concurrency,
      });
      await worker.waitUntilReady();
      return () => worker.close();
    },
    async [Symbol.asyncDispose]() {
      for (const queue of queues.values()) await queue.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

export async function pgBoss(): Promise<System> {
  const server = await startPostgres();
  const boss = new PgBoss({ host: "127.0.0.1", port: server.port, user: "bench", database: "postgres" });
  boss.on("error", () => undefined);
  await boss.start();
  return {
    name: "pg-boss",
    durability: "postgres, synchronous_commit on",
    create: (queue, payload) => boss.send(queue, payload),
    createMany: (queue, payloads) => boss.insert(payloads.map((data) => ({ name: queue, data }))),
    prepare: (queue) => boss.createQueue(queue),
    work: async (queue, concurrency, handle) => {
      // Its shortest poll; a worker takes one batch of as many jobs as may run at once.
      await boss.work<Payload>(
        queue,
        { batchSize: concurrency, pollingIntervalSeconds: 0.5 },
        async (jobs) => {
          for (const { data } of jobs) handle(data);
        },
      );
      return () => boss.offWork(queue);
    },
    async [Symbol.asyncDispose]() {
      await boss.stop({ graceful: false });
      await server[Symbol.asyncDispose]();
    },
  };
}
