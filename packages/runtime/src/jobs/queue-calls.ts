import type { JobResource } from "@trellis/contract";
import { UnavailableError } from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { type JobCreateFailure, type JobCreateOptions, JobCreator, type Submitted } from "./job-creator.ts";
import { JobRef, type JobRefFailure } from "./job-ref.ts";
import type { JobUpdates } from "./job-updates.ts";
import type { JobCalls, JobSubmission } from "./jobs-facade.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

const environments = new WeakMap<object, () => QueueEnvironment | undefined>();

/** What stands behind a queue's calls, for the testing kit; `undefined` while the queue is not bound. */
export function environmentOf(calls: object): QueueEnvironment | undefined {
  return environments.get(calls)?.();
}

/** A queue as callers have it; each call finds out whether the queue is bound now. */
export class QueueCalls implements JobCalls<unknown, unknown, unknown> {
  readonly #resource: JobResource;
  readonly #origin: CallOrigin | undefined;
  readonly #environment: () => QueueEnvironment | undefined;
  readonly #derive: (kind: string, parts: readonly string[]) => string;

  constructor(input: {
    readonly resource: JobResource;
    readonly origin: CallOrigin | undefined;
    readonly environment: () => QueueEnvironment | undefined;
    readonly derive: (kind: string, parts: readonly string[]) => string;
  }) {
    this.#resource = input.resource;
    this.#origin = input.origin;
    this.#environment = input.environment;
    this.#derive = input.derive;
    environments.set(this, input.environment);
  }

  create(payload: unknown, options: JobCreateOptions = {}): AsyncResult<JobRef, JobCreateFailure> {
    const queue = this.#environment();
    if (queue === undefined) return AsyncResult.err(notBound());
    const submitted = new JobCreator(queue, this.#resource).submit(this.#origin, payload, options);
    return submitted.andThen((outcome) => this.#created(queue, outcome));
  }

  submit(
    payload: unknown,
    options: JobCreateOptions = {},
  ): AsyncResult<JobSubmission<unknown, unknown>, JobCreateFailure> {
    const queue = this.#environment();
    if (queue === undefined) return AsyncResult.err(notBound());
    const submitted = new JobCreator(queue, this.#resource).submit(this.#origin, payload, options);
    return submitted.map((outcome) => this.#submission(queue, outcome));
  }

  createMany(
    payloads: readonly unknown[],
    options: (index: number) => JobCreateOptions = () => ({}),
  ): AsyncResult<readonly Result<JobRef, JobCreateFailure>[], JobCreateFailure> {
    const queue = this.#environment();
    if (queue === undefined) return AsyncResult.err(notBound());
    const made = new JobCreator(queue, this.#resource).submitMany(this.#origin, payloads, options);
    return made.map((results) =>
      results.map((result) => (result.isOk() ? this.#created(queue, result.value) : err(result.error))),
    );
  }

  updates(
    jobId: string,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncResult<JobUpdates<unknown>, JobRefFailure> {
    const queue = this.#environment();
    return queue === undefined ? AsyncResult.err(notBound()) : this.#ref(queue, jobId).updates(options);
  }

  /** Throws an `UnavailableError` where the queue is not bound: there is nothing that it could be a reference of. */
  ref(jobId: string): JobRef {
    const queue = this.#environment();
    if (queue === undefined) throw notBound();
    return this.#ref(queue, jobId);
  }

  derivedId(kind: string, parts: readonly string[]): string {
    return this.#derive(kind, parts);
  }

  #ref(queue: QueueEnvironment, jobId: string): JobRef {
    return new JobRef(queue, jobId, this.#resource);
  }

  #created(queue: QueueEnvironment, outcome: Submitted): Result<JobRef, JobCreateFailure> {
    if (outcome.kind === "rejected") return err(outcome.error);
    return ok(this.#ref(queue, outcome.kind === "coalesced" ? outcome.existing : outcome.jobId));
  }

  #submission(queue: QueueEnvironment, outcome: Submitted): JobSubmission<unknown, unknown> {
    const ref = (jobId: string) => this.#ref(queue, jobId);
    switch (outcome.kind) {
      case "accepted": {
        const { kind, key, jobId } = outcome;
        return key === undefined ? { kind, ref: ref(jobId) } : { kind, key, ref: ref(jobId) };
      }
      case "replaced":
        return {
          kind: "replaced",
          key: outcome.key,
          replaced: ref(outcome.replaced),
          ref: ref(outcome.jobId),
        };
      case "coalesced":
        return { kind: "coalesced", key: outcome.key, existing: ref(outcome.existing) };
      case "rejected":
        return outcome;
    }
  }
}

function notBound(): UnavailableError {
  return new UnavailableError({ reason: "not_bound" });
}
