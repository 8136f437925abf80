import { type Duration, parseDuration } from "@trellis/contract";
import type { JobCalls } from "@trellis/runtime";
import { JobTestControl } from "@trellis/runtime/node";
import { eventually } from "./eventually.ts";

/** A job as a test sees it: its snapshot, typed by its queue. */
export type SeenJob<Queue> =
  Queue extends JobCalls<infer Payload, infer Result, infer _Update>
    ? Omit<Snapshot, "payload" | "result"> & { readonly payload: Payload; readonly result?: Result }
    : never;

type Snapshot = Awaited<ReturnType<JobTestControl["seen"]>>[number];

export interface JobWait {
  /** Ms. Default 10 000. */
  readonly timeout?: number;
}

/** The jobs of a service under test. */
export interface JobsControl<Queues> {
  /** Every job of a queue as it stands now, also those that were over before anybody looked. */
  seen<Name extends keyof Queues & string>(queue: Name): Promise<readonly SeenJob<Queues[Name]>[]>;
  /** The first job of a queue that fits, now or within the time; rejects with what there was instead. */
  waitFor<Name extends keyof Queues & string>(
    queue: Name,
    fits: (job: SeenJob<Queues[Name]>) => boolean,
    options?: JobWait,
  ): Promise<SeenJob<Queues[Name]>>;
  /**
   * Runs all jobs that are due: resolves when every job of every queue is over or waits for a later time. A retry within
   * the next second is waited for. Rejects with the jobs that are left.
   */
  drain(options?: JobWait): Promise<void>;
  /**
   * Sets the clock of the service's jobs forward: delays, `runAt`, backoffs and deadlines of jobs that have not begun are
   * counted from there, and time tables make the jobs of their slots in their order. The clock of this process and of the
   * broker stay as they are, and so do other processes: all replicas that matter must be in this one.
   */
  advance(by: Duration): Promise<void>;
}

/**
 * Takes the jobs of a started service into the hand of a test: `const jobs = controlJobs(service.jobs)`.
 *
 * @example
 * await service.jobs.remind.create({ to: "ada" }, { delay: "1h" }).orThrow();
 * await jobs.advance("1h");
 * await jobs.drain();
 * expect(await jobs.seen("remind")).toMatchObject([{ state: "completed", payload: { to: "ada" } }]);
 */
export function controlJobs<Queues extends object>(queues: Queues): JobsControl<Queues> {
  const control = new JobTestControl(queues as Readonly<Record<string, object>>);
  // The queues' own types say what the payloads and results of their snapshots are.
  const seen = async <Name extends keyof Queues & string>(name: Name) =>
    (await control.seen(name)) as readonly SeenJob<Queues[Name]>[];
  return {
    seen,
    waitFor: (name, fits, { timeout = 10_000 } = {}) =>
      eventually(
        async () => {
          await control.nudge();
          const all = await seen(name);
          const found = all.find(fits);
          if (found !== undefined) return found;
          const states = all.map((job) => `${(job as Snapshot).id} ${(job as Snapshot).state}`);
          throw new Error(`No job of "${name}" fits; there are: ${states.join(", ") || "none"}.`);
        },
        { timeout, interval: 20 },
      ),
    drain: async ({ timeout = 10_000 } = {}) => {
      await eventually(
        async () => {
          const left = await control.unfinished(retryMs);
          if (left.length > 0)
            throw new Error(`Not over after ${timeout} ms: ${left.slice(0, 20).join(", ")}.`);
        },
        { timeout, interval: 20 },
      );
    },
    advance: (by) => control.advance(parseDuration(by, "advance")),
  };
}

/** Retries this soon are the broker's own matter, and come by themselves. */
const retryMs = 1_000;
