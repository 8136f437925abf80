import type { JobResource } from "@trellis/contract";
import { JobNotEnqueuedError, ValidationError } from "@trellis/protocol";
import {
  type AdmissionOutcome,
  admitToKey,
  clearSkip,
  isTerminalState,
  type JobPlace,
  type JobTrigger,
  type KeyLimits,
  type KeyRecord,
  keyLimits,
} from "@trellis/protocol/jobs";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { lineageOf, newJobContext, triggerOf } from "./job-context.ts";
import { jobEvent } from "./job-facts.ts";
import { asJobFailure } from "./job-failure.ts";
import type { JobFailure } from "./job-handler.ts";
import { draftJob, type JobCreateOptions, type JobRequestDraft } from "./job-request.ts";
import { nextTurn } from "./next-turn.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

export type { JobCreateOptions } from "./job-request.ts";

export type JobCreateFailure = JobFailure | ValidationError | JobNotEnqueuedError;

/** What became of a submission, by ids; the facade makes references of them. */
export type Submitted =
  | { readonly kind: "accepted"; readonly key?: string; readonly jobId: string }
  | { readonly kind: "replaced"; readonly key: string; readonly replaced: string; readonly jobId: string }
  | { readonly kind: "coalesced"; readonly key: string; readonly existing: string }
  | { readonly kind: "rejected"; readonly error: JobNotEnqueuedError };

/** Creations that are written in one turn of the event loop. */
const perTurn = 128;

/**
 * Makes the jobs of one queue.
 *
 * Invariants:
 * C1. An id makes one job at the most: its creation is stored only while the job has no transition.
 * C2. A job of a busy key is admitted by the key's record first. What a crash leaves behind after that is an entry
 *     without a job, which sweepers remove.
 */
export class JobCreator {
  readonly #queue: QueueEnvironment;
  readonly #resource: JobResource;

  constructor(queue: QueueEnvironment, resource: JobResource) {
    this.#queue = queue;
    this.#resource = resource;
  }

  submit(
    origin: CallOrigin | undefined,
    payload: unknown,
    options: JobCreateOptions = {},
  ): AsyncResult<Submitted, JobCreateFailure> {
    const draft = this.#draft(payload, options);
    if (draft.isErr()) return AsyncResult.err(draft.error);
    return AsyncResult.try(() => this.#make(draft.value, origin, options)).mapErr(asJobFailure);
  }

  /** Makes many in one round of publishes. When one of them is not valid, none is made. */
  submitMany(
    origin: CallOrigin | undefined,
    payloads: readonly unknown[],
    optionsOf: (index: number) => JobCreateOptions,
  ): AsyncResult<readonly Result<Submitted, JobCreateFailure>[], JobCreateFailure> {
    const drafts: { draft: JobRequestDraft; options: JobCreateOptions }[] = [];
    for (const [index, payload] of payloads.entries()) {
      const options = optionsOf(index);
      const draft = this.#draft(payload, options);
      if (draft.isErr()) return AsyncResult.err(inItem(index, draft.error));
      drafts.push({ draft: draft.value, options });
    }
    return AsyncResult.try(async () => {
      const made: Promise<Result<Submitted, JobCreateFailure>>[] = [];
      for (const { draft, options } of drafts) {
        made.push(
          this.#make(draft, origin, options).then(
            (submitted): Result<Submitted, JobCreateFailure> => ok(submitted),
            (error: unknown): Result<Submitted, JobCreateFailure> => err(asJobFailure(error)),
          ),
        );
        // What is written so far goes out, so that the broker works while the rest is written.
        if (made.length % perTurn === 0) await nextTurn();
      }
      return Promise.all(made);
    });
  }

  #draft(payload: unknown, options: JobCreateOptions): Result<JobRequestDraft, ValidationError> {
    const { link, name } = this.#queue;
    const input = {
      port: link.platform.port,
      now: link.clock.now(),
      maxPayload: link.broker.maxPayload,
      queue: name,
    };
    return draftJob(input, this.#resource, { payload, options });
  }

  async #make(
    draft: JobRequestDraft,
    origin: CallOrigin | undefined,
    options: JobCreateOptions,
  ): Promise<Submitted> {
    const { policy } = this.#resource;
    const limits = keyLimits(policy);
    const delayed = draft.delayMs !== undefined || draft.runAt !== undefined;
    const { key, jobId } = draft;
    const created = (place: JobPlace) => this.#create(draft, { origin, options, place });
    if (limits === undefined || key === undefined || delayed) {
      // A delayed job of a key meets the key when it is due.
      await created(delayed ? "delayed" : draft.lane);
      return {
        kind: "accepted",
        jobId,
        ...(key !== undefined && limits !== undefined && { key: key.label }),
      };
    }
    if (draft.named && (await this.#queue.store.last(jobId)) !== undefined)
      return { kind: "accepted", jobId, key: key.label };
    const blocked = this.#queue.blocked.has(key.hash);
    const { outcome, granted, record } = await this.#queue.keys.changeKey(key.hash, (current) => {
      const admission = {
        job: jobId,
        lane: draft.lane,
        submission: draft.submission,
        blocked,
        now: this.#queue.clock.now(),
      };
      const admitted = admitToKey(current, limits, admission);
      return { record: admitted.record, value: admitted };
    });
    if (outcome.kind === "rejected")
      return { kind: "rejected", error: notEnqueued(outcome, { record, limits, key: key.label }) };
    if (outcome.kind === "coalesced") return { ...outcome, key: key.label };
    const isNew = await created(granted ? draft.lane : "waiting");
    // The id belongs to a job of before, which may be over: then nobody else would let go of its slot.
    if (!isNew) await this.#letGoIfOver(jobId, key.hash);
    if (outcome.kind === "accepted") return { ...outcome, key: key.label, jobId: outcome.job };
    await this.skip(outcome.replaced, key.hash);
    return { kind: "replaced", key: key.label, replaced: outcome.replaced, jobId: outcome.job };
  }

  /** Stores the creation; false when the job exists. */
  async #create(
    draft: JobRequestDraft,
    {
      origin,
      options,
      place,
    }: { origin: CallOrigin | undefined; options: JobCreateOptions; place: JobPlace },
  ): Promise<boolean> {
    const { link, store } = this.#queue;
    const { delayMs, runAt, deadline, key, lane } = draft;
    const lineage = options.lineage ?? lineageOf(origin);
    const context = newJobContext(link.platform.port, origin);
    const trigger: JobTrigger = options.trigger ?? triggerOf(origin);
    const counts = { tries: 0, failures: 0, crashes: 0 };
    const { previousState: _, ...event } = jobEvent(
      { jobId: draft.jobId, state: "pending", context, counts },
      this.#queue.stamp(),
      {
        eventType: "created",
        state: "pending",
        maxTries: this.#resource.policy.retry.attempts,
        trigger,
        ...(lineage !== undefined && { lineage }),
        ...(deadline !== undefined && { deadline }),
        ...(delayMs !== undefined && { delayMs }),
        ...(runAt !== undefined && { runAt }),
        ...(lane !== "normal" && { priority: lane }),
        ...(key !== undefined && { key: key.hash }),
      },
    );
    const wait = Math.max(delayMs ?? 0, runAt === undefined ? 0 : runAt - link.clock.now());
    const written = await store.write({
      event,
      expected: 0,
      place,
      value: { name: "payload", text: draft.payload },
      ttlMs: store.horizonMs + wait + (deadline ?? 0),
      signal: options.signal,
    });
    return written.kind === "stored";
  }

  /** Ends a job that was replaced among the waiters. */
  async skip(jobId: string, keyHash: string): Promise<void> {
    await this.#queue.settle(jobId, (facts) =>
      facts.state === "active"
        ? undefined
        : {
            eventType: "skipped",
            state: "skipped",
            error: { type: "Replaced", message: "A newer job of its key took its place" },
          },
    );
    await this.#queue.keys.changeKey(keyHash, (record) => ({
      record: clearSkip(record, jobId),
      value: undefined,
    }));
  }

  async #letGoIfOver(jobId: string, keyHash: string): Promise<void> {
    const facts = await this.#queue.facts(jobId);
    if (facts === undefined || isTerminalState(facts.state))
      await this.#queue.releaseKey({ jobId, key: keyHash });
  }
}

type Rejected = Extract<AdmissionOutcome, { kind: "rejected" }>;

function notEnqueued(
  { reason, existing }: Rejected,
  at: { readonly record: KeyRecord; readonly limits: KeyLimits; readonly key: string },
): JobNotEnqueuedError {
  const { record, limits, key } = at;
  return new JobNotEnqueuedError({
    reason,
    key,
    active: record.slots.length,
    queued: record.waiters.length,
    limit: reason === "queue-depth" ? limits.maxQueued : limits.maxActive,
    existingJobId: existing,
  });
}

function inItem(index: number, { errors }: ValidationError): ValidationError {
  return new ValidationError({
    errors: errors.map(({ path, message }) => ({ path: `/${index}${path}`, message })),
  });
}
