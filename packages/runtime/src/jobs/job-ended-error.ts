import type { JobSnapshot, JobState } from "@trellis/protocol/jobs";
import { BaseError } from "@trellis/result";

/** A job ended otherwise than with a result: failed, cancelled, dead, and so on. */
export class JobEndedError extends BaseError {
  readonly kind = "call";
  readonly type = "JobEndedError";
  readonly state: JobState;
  readonly snapshot: JobSnapshot;

  constructor(snapshot: JobSnapshot) {
    const { id, type, state, lastError } = snapshot;
    super(`The job ${id} of ${type} is ${state}${lastError === undefined ? "" : `: ${lastError.message}`}`, {
      details: { jobId: id, state, ...(lastError !== undefined && { error: lastError.type }) },
    });
    this.state = state;
    this.snapshot = snapshot;
  }
}
