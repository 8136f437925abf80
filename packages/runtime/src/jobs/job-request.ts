import { type Duration, type JobResource, parseDuration } from "@trellis/contract";
import { encodeJson, isToken, type JsonIssue, newId, type Port, ValidationError } from "@trellis/protocol";
import {
  derivedJobId,
  JOB_LANES,
  type JobKey,
  type JobLane,
  type JobLineage,
  type JobTrigger,
  jobKey,
} from "@trellis/protocol/jobs";
import { err, ok, type Result } from "@trellis/result";

/** How a job is to be made. */
export interface JobCreateOptions {
  /** The job's id: one plain token. The same id never makes a second job. */
  readonly id?: string;
  /** The same submission gives the same outcome, and never a second job. */
  readonly submissionId?: string;
  /** Not to be worked on before so much time has passed. */
  readonly delay?: Duration;
  /** Not to be worked on before this instant: a Date, or ISO 8601 text with a zone. */
  readonly runAt?: Date | string;
  readonly priority?: JobLane;
  /** In place of the queue's: counted from the creation. */
  readonly deadline?: Duration;
  readonly trigger?: JobTrigger;
  readonly lineage?: JobLineage;
  readonly signal?: AbortSignal | undefined;
}

/** A job that is about to be made, checked and written. */
export interface JobRequestDraft {
  readonly jobId: string;
  /** The id was given or follows from a submission: the job may exist. */
  readonly named: boolean;
  readonly submission: string | undefined;
  /** JSON text. */
  readonly payload: string;
  readonly lane: JobLane;
  readonly delayMs: number | undefined;
  readonly runAt: number | undefined;
  readonly deadline: number | undefined;
  readonly key: JobKey | undefined;
}

/** What is kept of a message's room for everything but the payload. */
const room = 4_096;

/** Checks a payload and the options of a job; refuses what could not be stored or carried out. */
export function draftJob(
  input: { readonly port: Port; readonly now: number; readonly maxPayload: number; readonly queue: string },
  resource: JobResource,
  { payload, options }: { payload: unknown; options: JobCreateOptions },
): Result<JobRequestDraft, ValidationError> {
  const { port, now, maxPayload, queue } = input;
  const issues = resource.payload?.issues(payload) ?? optionIssues(options);
  if (issues !== undefined && issues.length > 0) return refused(issues);
  const encoded = encodeJson(payload);
  if (!encoded.ok) return refused(encoded.issues);
  if (encoded.text.length > maxPayload - room || port.utf8.length(encoded.text) > maxPayload - room)
    return refused([
      { path: "", message: `is too large for the broker, which takes ${maxPayload - room} bytes` },
    ]);
  const { policy } = resource;
  const key = keyOf(port, resource, payload);
  if (key !== undefined && !key.ok) return refused(key.issues);
  const named = options.id ?? options.submissionId;
  const deadline =
    options.deadline === undefined ? policy.deadlineMs : parseDuration(options.deadline, "deadline");
  return ok({
    jobId: options.id ?? submissionJobId(port, queue, options.submissionId) ?? newId(port, now),
    named: named !== undefined,
    submission: options.submissionId ?? options.id,
    payload: encoded.text,
    lane: options.priority ?? "normal",
    delayMs: options.delay === undefined ? undefined : parseDuration(options.delay, "delay"),
    runAt: options.runAt === undefined ? undefined : new Date(options.runAt).getTime(),
    deadline: deadline ?? undefined,
    key: key?.key,
  });
}

function submissionJobId(port: Port, queue: string, submission: string | undefined): string | undefined {
  return submission === undefined ? undefined : derivedJobId(port, "submission", [queue, submission]);
}

/** A queue that bounds its depth without keys has one key for all of its jobs. */
function keyOf(port: Port, { policy }: JobResource, payload: unknown) {
  if (policy.keyConcurrency !== null) return jobKey(port, policy.keyConcurrency.key, payload);
  return policy.queue === null && policy.rateLimit?.perKey !== true ? undefined : jobKey(port, [], payload);
}

const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/;

function optionIssues(options: JobCreateOptions): JsonIssue[] {
  const { id, submissionId, delay, runAt, priority } = options;
  const issues: JsonIssue[] = [];
  const refuse = (path: string, message: string) => issues.push({ path, message });
  if (id !== undefined && !isToken(id)) refuse("/id", "must be 1 to 256 of A-Z a-z 0-9 _ -");
  if (submissionId !== undefined && (submissionId.length === 0 || submissionId.length > 256))
    refuse("/submissionId", "must be 1 to 256 characters");
  if (delay !== undefined && runAt !== undefined) refuse("/runAt", "cannot stand beside delay");
  if (priority !== undefined && !JOB_LANES.includes(priority))
    refuse("/priority", "must be high, normal or low");
  if (typeof runAt === "string" && !zoned.test(runAt)) refuse("/runAt", "needs a time zone: Z or an offset");
  const instant = runAt === undefined ? 0 : new Date(runAt).getTime();
  if (!Number.isFinite(instant) || instant < 0) refuse("/runAt", "is no instant");
  for (const [name, duration] of Object.entries({ delay, deadline: options.deadline }))
    if (duration !== undefined && !isDuration(duration)) refuse(`/${name}`, "is no positive duration");
  return issues;
}

function isDuration(duration: Duration): boolean {
  try {
    return parseDuration(duration, "duration") > 0;
  } catch {
    return false;
  }
}

function refused(errors: readonly JsonIssue[]): Result<never, ValidationError> {
  return err(new ValidationError({ errors }));
}
