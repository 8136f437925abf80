import { CallError, type CallErrorOptions, type Open, withDetails } from "../errors/call-error.ts";

/** Why a queue did not take a job. */
export type JobNotEnqueuedReason = Open<"active-limit" | "queue-depth" | "stale-blocked">;

const MESSAGES: Readonly<Record<string, string>> = {
  "active-limit": "Another job of this key is at work, and none may wait",
  "queue-depth": "As many jobs of this key wait as may",
  "stale-blocked": "The job that holds this key fell silent; an operator has to release it",
};

/** A queue did not take a job: its key is busy, or it is full. */
export class JobNotEnqueuedError extends CallError {
  static readonly errorType = "JobNotEnqueuedError";
  readonly type = "JobNotEnqueuedError";
  readonly reason: JobNotEnqueuedReason;
  /** The key's segments as JSON text. */
  readonly key: string;
  readonly active: number;
  readonly queued: number;
  /** Of the jobs that run, or of those that wait: whichever was reached. */
  readonly limit: number;
  readonly existingJobId: string | undefined;

  constructor(
    options: CallErrorOptions & {
      readonly reason: JobNotEnqueuedReason;
      readonly key: string;
      readonly active: number;
      readonly queued: number;
      readonly limit: number;
      readonly existingJobId?: string | undefined;
    },
  ) {
    const { reason, key, active, queued, limit, existingJobId } = options;
    super(
      options.message ?? `${MESSAGES[reason] ?? `The job was refused: ${reason}`}: ${key}`,
      withDetails(options, {
        reason,
        key,
        active,
        queued,
        limit,
        ...(existingJobId !== undefined && { existingJobId }),
      }),
    );
    this.reason = reason;
    this.key = key;
    this.active = active;
    this.queued = queued;
    this.limit = limit;
    this.existingJobId = existingJobId;
  }
}
