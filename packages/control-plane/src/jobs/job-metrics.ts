import { isTerminalState, JOB_STATES, type JobSnapshot } from "@trellis/protocol/jobs";
import { countEnded, countMade, type JobFilter, newestEnded } from "../storage/jobs.ts";
import type { Queries } from "../storage/storage.ts";

interface Span {
  readonly now: number;
  readonly since?: number;
  readonly until?: number;
  readonly buckets?: number;
}

const defaultSpanMs = 3_600_000;
/** Jobs that times are taken of. */
const sample = 1_000;
const states = JOB_STATES.filter(isTerminalState);

/** How jobs came and went: `trellis.jobs@v1`, `Jobs.Metrics`. */
export async function jobMetrics(queries: Queries, { deploymentId, queue }: JobFilter, asked: Span) {
  const { now, until = now, since = until - defaultSpanMs, buckets = 60 } = asked;
  const bucketMs = Math.max(1, Math.ceil((until - since) / buckets));
  const span = { since, until, bucketMs };
  const place = { deploymentId, queue };
  const over = { ...place, states };
  const [made, ended, newest] = await Promise.all([
    countMade(queries, place, span),
    countEnded(queries, over, span),
    newestEnded(queries, over, { since, until, count: sample }),
  ]);
  const parts = Array.from({ length: Math.max(0, Math.ceil((until - since) / bucketMs)) }, (_, index) => ({
    at: since + index * bucketMs,
    created: 0,
    ended: {} as Record<string, number>,
  }));
  for (const { bucket, count } of made) {
    const part = parts[Number(bucket)];
    if (part !== undefined) part.created = Number(count);
  }
  for (const { bucket, state, count } of ended) {
    const part = parts[Number(bucket)];
    if (part !== undefined) part.ended[state] = Number(count);
  }
  return {
    ...span,
    buckets: parts,
    ...timesOf(newest.map(({ snapshot }) => JSON.parse(snapshot) as JobSnapshot)),
  };
}

function timesOf(jobs: readonly JobSnapshot[]) {
  const waits: number[] = [];
  const runs: number[] = [];
  for (const { createdAt, startedAt, completedAt } of jobs) {
    if (startedAt === undefined) continue;
    waits.push(Date.parse(startedAt) - Date.parse(createdAt));
    if (completedAt !== undefined) runs.push(Date.parse(completedAt) - Date.parse(startedAt));
  }
  return { waitMs: spread(waits), runMs: spread(runs) };
}

function spread(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  const [p50, p95, p99] = [at(0.5), at(0.95), at(0.99)];
  return p50 === undefined || p95 === undefined || p99 === undefined
    ? { count: 0 }
    : { count: sorted.length, p50, p95, p99 };
}
