import { CancelledError } from "@trellis/protocol";

/**
 * Why a handler's signal aborts: somebody cancelled the job; its deadline passed; another attempt or job has taken over
 * what this one held; it is there only to clean up after an attempt that was displaced; the service stops.
 */
export type JobAbortReason = "cancelled" | "deadline" | "lost-lease" | "stale-attempt" | "stopping";

/** The reason of a job's signal: a `CancelledError` whose `reason` says why. */
export function jobAborted(reason: JobAbortReason): CancelledError {
  return new CancelledError({ reason, message: `The job was aborted: ${reason}` });
}
