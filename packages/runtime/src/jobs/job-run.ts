import type { JobResource } from "@trellis/contract";
import { encodeJson } from "@trellis/protocol";
import { type JobError, timeLeft } from "@trellis/protocol/jobs";
import { isResult } from "@trellis/result";
import { systemTimers } from "../lifecycle/timers.ts";
import { ActiveJob } from "./active-job.ts";
import type { JobAttempt } from "./job-attempt.ts";
import { JobOrigin } from "./job-context.ts";
import { describeJobError } from "./job-failure.ts";
import type { JobHandleOptions, JobRequest } from "./job-handler.ts";
import type { Outcome } from "./job-settlement.ts";
import { withJobSpan } from "./job-span.ts";
import type { QueueEnvironment } from "./queue-environment.ts";
import { RetryJobError } from "./retry-job-error.ts";

export interface RunOptions {
  readonly queue: QueueEnvironment;
  readonly resource: JobResource;
  readonly traced: boolean;
  readonly retryOn: JobHandleOptions["retryOn"];
  /** Named in the errors that are stored: contract and digest. */
  readonly annotations: Readonly<Record<string, string>>;
  handle(request: JobRequest<unknown, unknown, unknown, unknown>): unknown;
  clientFor(origin: JobOrigin): unknown;
  onWaiting(attempt: JobAttempt, waiting: boolean): void;
}

/** Runs the handler of an attempt, and says how it ended. Never throws. */
export async function runJob(attempt: JobAttempt, options: RunOptions): Promise<Outcome> {
  const { queue, resource } = options;
  const decoded = resource.payload?.decode(attempt.facts.payload) ?? {
    ok: true as const,
    value: attempt.facts.payload,
  };
  // What does not fit its schema now will not fit it later.
  if (!decoded.ok) {
    const [first] = decoded.issues;
    const message = `The stored payload does not fit: ${first?.path ?? ""} ${first?.message ?? ""}`;
    return { kind: "ended", type: "dead", error: { type: "ValidationError", message } };
  }
  watchDeadline(attempt, queue);
  const job = new ActiveJob({
    queue,
    resource,
    attempt,
    payload: decoded.value,
    onWaiting: (waiting) => options.onWaiting(attempt, waiting),
  });
  const outcome = await called(attempt, job, options);
  attempt.ended = true;
  attempt.deadlineTimer?.clear();
  return outcome;
}

async function called(attempt: JobAttempt, job: ActiveJob, options: RunOptions): Promise<Outcome> {
  const { queue, traced } = options;
  const { port } = queue.link.platform;
  try {
    const answer = await withJobSpan(
      { queue: queue.name, service: queue.service, context: attempt.facts.context, traced },
      (trace) => {
        const origin = new JobOrigin(attempt, { port, queue: queue.name, trace });
        return options.handle({ job, client: options.clientFor(origin) });
      },
    );
    if (answer instanceof Error) return failed(attempt, answer, options);
    if (!isResult(answer)) return succeeded(attempt, answer, options);
    return answer.ok ? succeeded(attempt, answer.value, options) : failed(attempt, answer.error, options);
  } catch (error) {
    return failed(attempt, error, options);
  }
}

/** A signal that was aborted decides, whatever the handler made of it; only a stop lets a result count that came in time. */
function succeeded(attempt: JobAttempt, value: unknown, { resource, queue }: RunOptions): Outcome {
  const aborted = abortedOutcome(attempt);
  if (aborted !== undefined && attempt.abortedFor !== "stopping") return aborted;
  const issues = resource.result?.issues(value);
  if (issues !== undefined) {
    const [first] = issues;
    return notStorable(
      `The handler's result does not fit its schema: ${first?.path ?? ""} ${first?.message ?? ""}`,
    );
  }
  if (resource.result === undefined) return { kind: "completed", result: undefined };
  const encoded = encodeJson(value);
  if (!encoded.ok) return notStorable(`The handler's result is no JSON: ${encoded.issues[0]?.path ?? ""}`);
  const { link } = queue;
  const room = link.broker.maxPayload - resultRoom;
  if (encoded.text.length > room || link.platform.port.utf8.length(encoded.text) > room)
    return notStorable(`The handler's result is too large for the broker, which takes ${room} bytes`);
  return { kind: "completed", result: encoded.text };
}

function failed(attempt: JobAttempt, thrown: unknown, options: RunOptions): Outcome {
  const aborted = abortedOutcome(attempt);
  if (aborted !== undefined) return aborted;
  const { context } = attempt.facts;
  const error = describeJobError(thrown, {
    ...options.annotations,
    jobType: options.queue.name,
    requestId: context.requestId,
    traceId: context.traceId,
  });
  if (isRetryable(thrown, options)) return { kind: "retry", error };
  return { kind: "ended", type: "failed", error };
}

function isRetryable(thrown: unknown, { retryOn }: RunOptions): boolean {
  if (thrown instanceof RetryJobError) return true;
  try {
    return retryOn?.(thrown) === true;
  } catch {
    return false;
  }
}

function abortedOutcome({ abortedFor }: JobAttempt): Outcome | undefined {
  switch (abortedFor) {
    case undefined:
      return undefined;
    case "deadline":
      return { kind: "ended", type: "expired", error: ended("Expired", "The deadline passed while it ran") };
    case "stale-attempt":
      return { kind: "ended", type: "stale", error: ended("Stale", "Its slot had been taken over") };
    case "stopping":
      return { kind: "handed-back" };
    case "cancelled":
    case "lost-lease":
      return {
        kind: "displaced",
        error: ended("StaleCompletion", `It ended after it was aborted: ${abortedFor}`),
      };
  }
}

function ended(type: string, message: string): JobError {
  return { type, message };
}

function notStorable(message: string): Outcome {
  return { kind: "ended", type: "failed", error: { type: "ValidationError", message } };
}

const resultRoom = 4_096;

function watchDeadline(attempt: JobAttempt, queue: QueueEnvironment): void {
  const left = timeLeft(attempt.facts, queue.clock.now());
  if (left === Number.POSITIVE_INFINITY) return;
  attempt.deadlineTimer = systemTimers.set(() => attempt.abort("deadline"), left, { background: true });
}
