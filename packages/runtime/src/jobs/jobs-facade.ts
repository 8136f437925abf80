import type { AnyParticipant, InputOf, JobResource, OutputOf } from "@trellis/contract";
import type { JobNotEnqueuedError } from "@trellis/protocol";
import type { AsyncResult, Result } from "@trellis/result";
import type { JobCreateFailure, JobCreateOptions } from "./job-creator.ts";
import type { JobHandleOptions, JobHandler } from "./job-handler.ts";
import type { JobRef, JobRefFailure } from "./job-ref.ts";
import type { JobUpdates } from "./job-updates.ts";

/** What became of a submission. */
export type JobSubmission<R, U> =
  | { readonly kind: "accepted"; readonly key?: string; readonly ref: JobRef<R, U> }
  | {
      readonly kind: "replaced";
      readonly key: string;
      readonly replaced: JobRef<R, U>;
      readonly ref: JobRef<R, U>;
    }
  | { readonly kind: "coalesced"; readonly key: string; readonly existing: JobRef<R, U> }
  | { readonly kind: "rejected"; readonly error: JobNotEnqueuedError };

/** A queue, to make jobs in and to look after them. */
export interface JobCalls<P, R, U> {
  /** Makes a job; a coalesced one is the job that exists, a rejected one an error. */
  create(payload: P, options?: JobCreateOptions): AsyncResult<JobRef<R, U>, JobCreateFailure>;
  /** Makes a job, and says what became of it. */
  submit(payload: P, options?: JobCreateOptions): AsyncResult<JobSubmission<R, U>, JobCreateFailure>;
  /** Makes many in one round of publishes. When one payload is not valid, none is made. */
  createMany(
    payloads: readonly P[],
    options?: (index: number) => JobCreateOptions,
  ): AsyncResult<readonly Result<JobRef<R, U>, JobCreateFailure>[], JobCreateFailure>;
  /** Live updates of a job, from now on. */
  updates(
    jobId: string,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncResult<JobUpdates<U>, JobRefFailure>;
  /** A job by its id, whoever made it. */
  ref(jobId: string): JobRef<R, U>;
  /** An id that follows from something else. */
  derivedId(kind: string, parts: readonly string[]): string;
}

/** A queue of the service itself. */
export interface JobQueue<P, R, U, Handler> extends JobCalls<P, R, U> {
  /** Handles the jobs of the queue, once per service, before it starts. */
  handle(handler: Handler, options?: JobHandleOptions): void;
}

type QueueOf<J extends JobResource, Client> = JobQueue<
  InputOf<J["schemas"]["payload"]>,
  OutputOf<J["schemas"]["result"]>,
  OutputOf<J["schemas"]["update"]>,
  // A handler sends results and updates: it gives them in the form that the wire carries.
  JobHandler<
    OutputOf<J["schemas"]["payload"]>,
    InputOf<J["schemas"]["result"]>,
    InputOf<J["schemas"]["update"]>,
    Client
  >
>;

type CallsOf<J extends JobResource> = JobCalls<
  InputOf<J["schemas"]["payload"]>,
  OutputOf<J["schemas"]["result"]>,
  OutputOf<J["schemas"]["update"]>
>;

/** `service.jobs.<queue>` for each declared queue: to make jobs in, and to handle. */
export type JobsFacade<P extends AnyParticipant, Client> = P["jobs"] extends infer Queues
  ? { readonly [Q in keyof Queues]: Queues[Q] extends JobResource ? QueueOf<Queues[Q], Client> : never }
  : never;

/** `client.jobs.<queue>` for each declared queue: to make jobs in. */
export type JobsCallFacade<P extends AnyParticipant> = P["jobs"] extends infer Queues
  ? { readonly [Q in keyof Queues]: Queues[Q] extends JobResource ? CallsOf<Queues[Q]> : never }
  : never;
