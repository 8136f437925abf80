/** What every job of the benchmark carries: when it was made, ms of the process's monotonic clock. */
export interface Payload {
  readonly at: number;
}

export const queueNames = ["single", "batch", "drain1", "drain10", "drain100", "latency", "memory"] as const;
export type QueueName = (typeof queueNames)[number];

/** A system of jobs, as the process that makes and works them sees it. */
export interface System {
  create(queue: QueueName, payload: Payload): Promise<unknown>;
  /** Resolves when all are stored. */
  createMany(queue: QueueName, payloads: readonly Payload[]): Promise<unknown>;
  /** Starts a worker; the answer stops it, when what it has begun is settled. */
  work(
    queue: QueueName,
    concurrency: number,
    handle: (payload: Payload) => void,
  ): Promise<() => Promise<unknown>>;
  /** Looks a job up that was created one by one; `undefined`: not compared. */
  readonly lookUp?: ((created: unknown) => Promise<unknown>) | undefined;
  /** Starts another process' worth of workers and stops it; `undefined`: not compared. */
  readonly startUp?: (() => Promise<unknown>) | undefined;
  close(): Promise<unknown>;
}

export const systemNames = ["trellis", "BullMQ", "pg-boss", "bare"] as const;
export type SystemName = (typeof systemNames)[number];

/** What the measuring process is asked for, and answers: jobs per second, or times in ms. */
export type Task =
  | { readonly kind: "create"; readonly inFlight: number; readonly jobs: number }
  | { readonly kind: "batch"; readonly jobs: number }
  | { readonly kind: "drain"; readonly queue: QueueName; readonly concurrency: number; readonly jobs: number }
  | { readonly kind: "latency"; readonly jobs: number }
  | { readonly kind: "memory"; readonly jobs: number }
  | { readonly kind: "finished"; readonly jobs: number };
