import type {
  JobContext,
  JobError,
  JobEvent,
  JobLineage,
  JobLog,
  JobProgress,
  JobRetryReason,
  JobTrigger,
  JobWaitEdge,
} from "./job-event.ts";
import { isTerminalState, type JobState } from "./job-states.ts";

/** A job as its events tell of it. Instants are ISO 8601, by the broker's clock where the broker stored them. */
export interface JobSnapshot {
  readonly id: string;
  readonly service: string;
  readonly type: string;
  readonly state: JobState;
  readonly payload: unknown;
  readonly context: JobContext;
  readonly trigger?: JobTrigger;
  readonly lineage?: JobLineage;
  /** Attempts begun. */
  readonly tries: number;
  readonly maxTries?: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly startedAt?: string;
  readonly completedAt?: string;
  readonly deadline?: string;
  readonly progress?: JobProgress;
  readonly logs?: readonly JobLog[];
  readonly waitingOn?: readonly JobWaitEdge[];
  readonly result?: unknown;
  readonly lastError?: JobError;
  readonly retryReason?: JobRetryReason;
}

/** An event and when the broker stored it, ms; without that, its own timestamp counts. */
export interface StoredJobEvent {
  readonly event: JobEvent;
  readonly at?: number;
}

/** The snapshot of a job's events, in the order of the stream; `undefined` as long as none has created it. */
export function reduceJob(events: Iterable<StoredJobEvent>): JobSnapshot | undefined {
  let snapshot: JobSnapshot | undefined;
  for (const stored of events) snapshot = reduceJobEvent(snapshot, stored);
  return snapshot;
}

type Draft = { -readonly [K in keyof JobSnapshot]: JobSnapshot[K] };

/** One step of {@link reduceJob}. Gives the very same snapshot when the event changes nothing. */
export function reduceJobEvent(
  snapshot: JobSnapshot | undefined,
  stored: StoredJobEvent,
): JobSnapshot | undefined {
  const { event } = stored;
  const at = new Date(stored.at ?? Date.parse(event.timestamp)).toISOString();
  if (snapshot === undefined) return event.eventType === "created" ? born(event, at) : undefined;
  if (event.jobId !== snapshot.id || event.service !== snapshot.service || event.jobType !== snapshot.type)
    return snapshot;
  if (event.eventType === "created") return snapshot;
  if (event.eventType === "retried") return replayed(snapshot, event, at);
  if (isTerminalState(snapshot.state)) return snapshot;
  const draft: Draft = { ...snapshot };
  common(draft, event, at);
  special(draft, event, at);
  return draft;
}

function born(event: JobEvent, at: string): JobSnapshot {
  const draft: Draft = {
    id: event.jobId,
    service: event.service,
    type: event.jobType,
    state: event.state,
    payload: event.payload ?? null,
    context: event.context,
    tries: event.tries,
    createdAt: at,
    updatedAt: at,
  };
  common(draft, event, at);
  return draft;
}

/** The one way out of a terminal state: a new run of the same job, from its beginning. */
function replayed(snapshot: JobSnapshot, event: JobEvent, at: string): JobSnapshot {
  if (snapshot.state !== "dead" && snapshot.state !== "failed") return snapshot;
  const { startedAt: _s, completedAt: _c, result: _r, progress: _p, waitingOn: _w, ...kept } = snapshot;
  const { lastError: _e, retryReason: _t, ...rest } = kept;
  const draft: Draft = { ...rest };
  common(draft, event, at);
  if (event.payload !== undefined) draft.payload = event.payload;
  return draft;
}

function common(draft: Draft, event: JobEvent, at: string): void {
  draft.state = event.state;
  draft.updatedAt = at;
  draft.tries = event.tries;
  if (event.maxTries !== undefined) draft.maxTries = event.maxTries;
  if (event.deadline !== undefined)
    draft.deadline = new Date(Date.parse(draft.createdAt) + event.deadline).toISOString();
  if (event.trigger !== undefined) draft.trigger = event.trigger;
  if (event.lineage !== undefined) draft.lineage = event.lineage;
}

function special(draft: Draft, event: JobEvent, at: string): void {
  switch (event.eventType) {
    case "started":
      draft.startedAt = at;
      return;
    case "progress":
      if (event.progress !== undefined) draft.progress = event.progress;
      return;
    case "logged":
      draft.logs = [...(draft.logs ?? []), ...(event.logs ?? [])];
      return;
    case "waiting":
      if (event.waitEdge !== undefined) draft.waitingOn = [...others(draft, event.waitEdge), event.waitEdge];
      return;
    case "resumed":
      if (event.waitEdge !== undefined) draft.waitingOn = others(draft, event.waitEdge);
      return;
    case "retry":
      if (event.retryReason !== undefined) draft.retryReason = event.retryReason;
      return fold(draft, event, at);
    case "completed":
      draft.completedAt = at;
      draft.result = event.result ?? null;
      return fold(draft, event, at);
    case "heartbeat":
      return;
    default:
      if (event.error !== undefined) draft.lastError = event.error;
      return fold(draft, event, at);
  }
}

/** An attempt so quick that its start was never written: the settlement tells how long it took. */
function fold(draft: Draft, event: JobEvent, at: string): void {
  if (draft.startedAt !== undefined || event.ranForMs === undefined) return;
  draft.startedAt = new Date(Date.parse(at) - Math.round(event.ranForMs)).toISOString();
}

function others(draft: Draft, edge: JobWaitEdge): readonly JobWaitEdge[] {
  return (draft.waitingOn ?? []).filter(({ id }) => id !== edge.id);
}
