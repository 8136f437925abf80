import type {
  AuthError,
  BusyError,
  CancelledError,
  TimeoutError,
  TransportError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import type {
  JobContext,
  JobLog,
  JobProgress,
  JobSnapshot,
  JobTrigger,
  JobWaitEdge,
} from "@trellis/protocol/jobs";
import type { AsyncResult, Result as Outcome, UnexpectedError } from "@trellis/result";
import type { JobCreateFailure, JobCreateOptions } from "./job-creator.ts";
import type { JobRef } from "./job-ref.ts";
import type { JobCalls } from "./jobs-facade.ts";

/** Why something about a job could not be done. */
export type JobFailure =
  | TransportError
  | AuthError
  | TimeoutError
  | CancelledError
  | UnavailableError
  | BusyError
  | UnexpectedError;

/** What a job waits for: another job, an operation, or anything else. */
export interface JobWaitTarget {
  readonly kind: JobWaitEdge["kind"];
  readonly target: string;
  /** Default: kind and target. */
  readonly id?: string;
}

/** A job as its handler has it. */
export interface Job<Payload, Result, Update> {
  readonly id: string;
  readonly payload: Payload;
  readonly context: JobContext;
  /** What made it. Of a schedule: its name, and as `id` the slot as an ISO instant. */
  readonly trigger: JobTrigger | undefined;
  /** 1 in the first run. */
  readonly tries: number;
  /** How often the broker delivered the message of this attempt before. */
  readonly redeliveryCount: number;
  /** Aborts with a `CancelledError`; its `reason` says why: `cancelled`, `deadline`, `lost-lease`, `stale-attempt`, `stopping`. */
  readonly signal: AbortSignal;
  readonly ref: JobRef<Result, Update>;
  readonly children: JobChildren;
  isCancelled(): boolean;
  /** Stores a sign of life that others can see. Leases are kept without it. */
  heartbeat(): AsyncResult<void, JobFailure>;
  progress(progress: JobProgress): AsyncResult<void, JobFailure | ValidationError>;
  log(entry: Pick<JobLog, "level" | "message">): AsyncResult<void, JobFailure | ValidationError>;
  /** Sends to those who listen now; not stored. */
  emitUpdate(update: Update): AsyncResult<void, JobFailure | ValidationError>;
  /** Tells others what the job waits for while `fn` runs. It takes no handler's place meanwhile. */
  waitFor<T>(target: JobWaitTarget, fn: () => T | PromiseLike<T>): Promise<T>;
}

/** The jobs that a job makes. */
export interface JobChildren {
  /** Makes a child; `step` names it among its siblings, so that a second attempt finds the child of the first. */
  create<P, R, U>(
    queue: JobCalls<P, R, U>,
    payload: P,
    options: JobCreateOptions & { readonly step: string },
  ): AsyncResult<JobRef<R, U>, JobCreateFailure>;
  /** Waits until all children of this attempt are over, however they ended. */
  wait(): AsyncResult<readonly JobSnapshot[], JobFailure>;
}

export interface JobRequest<Payload, Result, Update, Client> {
  readonly job: Job<Payload, Result, Update>;
  /** Calls made through it inherit request id and trace. */
  readonly client: Client;
}

/** What a handler may give back. */
export type JobAnswer<Result> = Result | Outcome<Result, unknown> | Error;

/**
 * Handles one job. What it returns is the job's result; an `Err`, an error or a throw fails the job for good, a
 * `RetryJobError` has it tried again. Jobs come at least once.
 */
export type JobHandler<Payload, Result, Update, Client> = (
  request: JobRequest<Payload, Result, Update, Client>,
) => JobAnswer<Result> | PromiseLike<JobAnswer<Result>>;

export interface JobHandleOptions {
  /** Handlers that run at a time in this process. Default: the contract's. */
  readonly concurrency?: number;
  /** Errors that are to be tried again beside `RetryJobError`. */
  readonly retryOn?: (error: unknown) => boolean;
}
