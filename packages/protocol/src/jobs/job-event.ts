import { type Static, Type } from "typebox";
import { JOB_NOTES, JOB_STATES, JOB_TRANSITIONS } from "./job-states.ts";
import { JOB_LANES, type JobSubjectReading } from "./job-subjects.ts";
import { schemaCheck } from "./schema-check.ts";

const count = Type.Integer({ minimum: 0 });
const text = (maxLength: number) => Type.String({ maxLength });

/** Request and trace that a job belongs to: inherited by what it makes. */
export const JobContextSchema = Type.Object({
  requestId: text(64),
  traceId: text(64),
  traceparent: text(128),
  tracestate: Type.Optional(text(1_024)),
});
export type JobContext = Static<typeof JobContextSchema>;

/** What made a job. */
export const JobTriggerSchema = Type.Object({
  kind: Type.Enum(["schedule", "operation", "rpc", "event", "manualReplay", "serviceCode", "parentJob"]),
  /** Name of the schedule, RPC, event, operation or queue. */
  name: Type.Optional(text(256)),
  /** Id of the event, operation or job; of a schedule, the slot as an instant. */
  id: Type.Optional(text(256)),
});
export type JobTrigger = Static<typeof JobTriggerSchema>;

/** What a job belongs to. */
export const JobLineageSchema = Type.Object({
  parent: Type.Optional(Type.Object({ queue: text(256), jobId: text(256) })),
  operation: Type.Optional(text(256)),
});
export type JobLineage = Static<typeof JobLineageSchema>;

export const JobProgressSchema = Type.Object({
  step: Type.Optional(text(256)),
  message: Type.Optional(text(2_048)),
  current: Type.Optional(Type.Number()),
  total: Type.Optional(Type.Number()),
});
export type JobProgress = Static<typeof JobProgressSchema>;

export const JobLogSchema = Type.Object({
  level: Type.Enum(["info", "warn", "error"]),
  message: text(8_192),
  timestamp: Type.Optional(text(40)),
});
export type JobLog = Static<typeof JobLogSchema>;

/** Something that a job waits for. */
export const JobWaitEdgeSchema = Type.Object({
  id: text(256),
  kind: Type.Enum(["job", "operation", "external"]),
  target: text(512),
});
export type JobWaitEdge = Static<typeof JobWaitEdgeSchema>;

/** An error in its stored form. More members than these may be there. */
export const JobErrorSchema = Type.Object({
  type: text(256),
  message: text(4_096),
  id: Type.Optional(text(128)),
  details: Type.Optional(Type.Unknown()),
});
export type JobError = Static<typeof JobErrorSchema>;

/** Why a job is to be tried again. Only `error` counts against its attempts. */
export const RETRY_REASONS = ["error", "handed-back", "stale-attempt"] as const;
export type JobRetryReason = (typeof RETRY_REASONS)[number];

/** The body of a lifecycle event or note. */
export const JobEventSchema = Type.Object({
  jobId: text(256),
  service: text(256),
  jobType: text(256),
  eventType: Type.Enum([...JOB_TRANSITIONS, ...JOB_NOTES]),
  /** Names this very event: how its writer finds out whether it was stored when the answer was lost. */
  eventId: text(64),
  state: Type.Enum(JOB_STATES),
  previousState: Type.Optional(Type.Enum(JOB_STATES)),
  context: JobContextSchema,
  /** Attempts begun so far. */
  tries: count,
  maxTries: Type.Optional(count),
  error: Type.Optional(JobErrorSchema),
  progress: Type.Optional(JobProgressSchema),
  logs: Type.Optional(Type.Array(JobLogSchema)),
  payload: Type.Optional(Type.Unknown()),
  result: Type.Optional(Type.Unknown()),
  /** Milliseconds after creation, by the broker's clock. */
  deadline: Type.Optional(count),
  trigger: Type.Optional(JobTriggerSchema),
  lineage: Type.Optional(JobLineageSchema),
  waitEdge: Type.Optional(JobWaitEdgeSchema),
  /** When its writer made it; the broker's own time of storage counts. */
  timestamp: text(40),
  /** Of the attempt that wrote it. */
  token: Type.Optional(text(64)),
  /** Of `started`: the message that the attempt works on, by its sequence; when that comes again, its worker is lost. */
  source: Type.Optional(count),
  /** Attempts that ended with a handler's error. */
  failures: Type.Optional(count),
  /** Attempts that ended with their worker. */
  crashes: Type.Optional(count),
  /** Of `created` and `retry`: to be worked on that much later than it was stored. */
  delayMs: Type.Optional(count),
  /** Of `created`: to be worked on at that instant, ms since the epoch. */
  runAt: Type.Optional(count),
  priority: Type.Optional(Type.Enum(JOB_LANES)),
  /** Of `created`: the hash of its key. */
  key: Type.Optional(text(64)),
  retryReason: Type.Optional(Type.Enum(RETRY_REASONS)),
  /** Of a settlement: how long the attempt took. */
  ranForMs: Type.Optional(Type.Number({ minimum: 0 })),
});
export type JobEvent = Static<typeof JobEventSchema>;

const check = schemaCheck(JobEventSchema);

/** The event of a decoded body; `undefined` unless it fits the schema and agrees with the subject that it came on. */
export function readJobEvent(
  body: unknown,
  subject: Pick<JobSubjectReading, "jobId" | "event">,
): JobEvent | undefined {
  if (!check(body)) return undefined;
  return body.jobId === subject.jobId && body.eventType === subject.event ? body : undefined;
}

/** The headers of an event: those of its context, for the tools of others. */
export function jobEventHeaders({ context }: Pick<JobEvent, "context">): Record<string, string> {
  const headers: Record<string, string> = {
    "request-id": context.requestId,
    traceparent: context.traceparent,
  };
  if (context.tracestate !== undefined) headers["tracestate"] = context.tracestate;
  return headers;
}
