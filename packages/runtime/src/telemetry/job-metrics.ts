import { type Histogram, metrics, type UpDownCounter } from "@opentelemetry/api";

let duration: Histogram | undefined;
let wait: Histogram | undefined;
let running: UpDownCounter | undefined;

/** How an attempt ended, as its handler's worker sees it. */
export type JobOutcome =
  | "completed"
  | "retry"
  | "failed"
  | "expired"
  | "stale"
  | "dead"
  | "displaced"
  | "handed-back";

/** Records an attempt as `trellis.job.duration`, seconds; labels are the queue and how it ended, never ids. */
export function recordJob(queue: string, outcome: JobOutcome, ms: number): void {
  duration ??= metrics.getMeter("trellis").createHistogram("trellis.job.duration", {
    unit: "s",
    description: "Time that attempts at jobs take, by queue and outcome",
  });
  duration.record(ms / 1_000, { queue, outcome });
}

/** Records how long a job was due before its attempt began, as `trellis.job.wait`, seconds. */
export function recordJobWait(queue: string, ms: number): void {
  wait ??= metrics.getMeter("trellis").createHistogram("trellis.job.wait", {
    unit: "s",
    description: "Time from when a job is due to the beginning of its attempt, by queue",
  });
  wait.record(Math.max(0, ms) / 1_000, { queue });
}

/** Counts attempts that run, as `trellis.job.running`. */
export function recordJobRunning(queue: string, change: 1 | -1): void {
  running ??= metrics.getMeter("trellis").createUpDownCounter("trellis.job.running", {
    description: "Attempts at jobs that run, by queue",
  });
  running.add(change, { queue });
}
