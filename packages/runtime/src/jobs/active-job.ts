import type { JobResource } from "@trellis/contract";
import { CancelledError, encodeJson, utf8Bytes, ValidationError } from "@trellis/protocol";
import {
  type JobContext,
  type JobEvent,
  type JobLog,
  type JobNoteType,
  type JobProgress,
  type JobSnapshot,
  type JobTrigger,
  type JobUpdate,
} from "@trellis/protocol/jobs";
import { AsyncResult } from "@trellis/result";
import type { JobAttempt } from "./job-attempt.ts";
import type { JobCreateOptions } from "./job-creator.ts";
import { jobEvent } from "./job-facts.ts";
import { asJobFailure } from "./job-failure.ts";
import type { Job, JobChildren, JobFailure, JobWaitTarget } from "./job-handler.ts";
import { JobRef } from "./job-ref.ts";
import type { JobCalls } from "./jobs-facade.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

export interface ActiveJobInput {
  readonly queue: QueueEnvironment;
  readonly resource: JobResource;
  readonly attempt: JobAttempt;
  readonly payload: unknown;
  /** The handler waits, and takes no place meanwhile; or goes on. */
  onWaiting(waiting: boolean): void;
}

/** A job as its handler has it, for as long as its attempt lasts. */
export class ActiveJob implements Job<unknown, unknown, unknown> {
  readonly payload: unknown;
  #children: JobChildren | undefined;
  readonly #input: ActiveJobInput;

  constructor(input: ActiveJobInput) {
    this.#input = input;
    this.payload = input.payload;
  }

  /** Made when it is asked for: most jobs have none. */
  get children(): JobChildren {
    this.#children ??= new Children(this, this.#input.queue.name);
    return this.#children;
  }

  get id(): string {
    return this.#input.attempt.jobId;
  }

  get context(): JobContext {
    return this.#input.attempt.facts.context;
  }

  get trigger(): JobTrigger | undefined {
    return this.#input.attempt.facts.trigger;
  }

  get tries(): number {
    return this.#input.attempt.counts.tries;
  }

  get redeliveryCount(): number {
    return this.#input.attempt.message.facts.deliveries - 1;
  }

  get signal(): AbortSignal {
    return this.#input.attempt.stop.signal;
  }

  get ref(): JobRef {
    return new JobRef(this.#input.queue, this.id, this.#input.resource);
  }

  isCancelled(): boolean {
    return this.#input.attempt.abortedFor === "cancelled";
  }

  heartbeat(): AsyncResult<void, JobFailure> {
    return this.#note("heartbeat", {});
  }

  progress(progress: JobProgress): AsyncResult<void, JobFailure | ValidationError> {
    const encoded = encodeJson(progress);
    if (!encoded.ok) return AsyncResult.err(new ValidationError({ errors: encoded.issues }));
    return this.#note("progress", { progress });
  }

  log({
    level,
    message,
  }: Pick<JobLog, "level" | "message">): AsyncResult<void, JobFailure | ValidationError> {
    const text = message.length > 8_000 ? `${message.slice(0, 8_000)}…` : message;
    return this.#note("logged", { logs: [{ level, message: text.toWellFormed() }] });
  }

  emitUpdate(update: unknown): AsyncResult<void, JobFailure | ValidationError> {
    const { attempt, queue, resource } = this.#input;
    if (attempt.ended) return AsyncResult.err(over());
    const issues = resource.update?.issues(update) ?? undefined;
    if (resource.update === undefined)
      return AsyncResult.err(
        new ValidationError({ errors: [{ path: "", message: "the queue declares no updates" }] }),
      );
    if (issues !== undefined) return AsyncResult.err(new ValidationError({ errors: issues }));
    const encoded = encodeJson(update);
    if (!encoded.ok) return AsyncResult.err(new ValidationError({ errors: encoded.issues }));
    attempt.updates += 1;
    const frame: JobUpdate = {
      jobId: this.id,
      attempt: this.tries,
      sequence: attempt.updates,
      timestamp: new Date(queue.link.clock.now()).toISOString(),
      update,
    };
    const sent = queue.link.broker.publish(
      `${queue.store.subjects.updates}.${this.id}`,
      utf8Bytes(JSON.stringify(frame)),
    );
    return sent ? AsyncResult.ok() : AsyncResult.err(new CancelledError({ reason: "disconnected" }));
  }

  async waitFor<T>(target: JobWaitTarget, fn: () => T | PromiseLike<T>): Promise<T> {
    const { attempt, onWaiting } = this.#input;
    if (attempt.ended) throw over();
    const { kind, target: name, id = `${kind}:${name}` } = target;
    const waitEdge = { id: id.slice(0, 256), kind, target: name.slice(0, 512) };
    await this.#note("waiting", { waitEdge });
    onWaiting(true);
    try {
      return await fn();
    } finally {
      onWaiting(false);
      await this.#note("resumed", { waitEdge });
    }
  }

  #note(eventType: JobNoteType, own: Partial<JobEvent>): AsyncResult<void, JobFailure> {
    const { attempt, queue } = this.#input;
    if (attempt.ended) return AsyncResult.err(over());
    const facts = { ...attempt.facts, counts: attempt.counts };
    const { previousState: _, ...event } = jobEvent(facts, queue.stamp(), {
      eventType,
      state: "active",
      token: attempt.token,
      ...own,
    });
    return AsyncResult.try(() => queue.store.note(event), asJobFailure);
  }
}

/** The children of one attempt. */
class Children implements JobChildren {
  readonly #job: ActiveJob;
  readonly #queue: string;
  readonly #refs: JobRef[] = [];

  constructor(job: ActiveJob, queue: string) {
    this.#job = job;
    this.#queue = queue;
  }

  create<P, R, U>(
    queue: JobCalls<P, R, U>,
    payload: P,
    { step, ...options }: JobCreateOptions & { readonly step: string },
  ) {
    const parent = { queue: this.#queue, jobId: this.#job.id };
    const id = options.id ?? childId(queue, parent, step);
    const made = queue.create(payload, {
      ...options,
      id,
      trigger: { kind: "parentJob", name: parent.queue, id: parent.jobId },
      lineage: { ...options.lineage, parent },
    });
    return made.map((ref) => {
      this.#refs.push(ref);
      return ref;
    });
  }

  wait(): AsyncResult<readonly JobSnapshot[], JobFailure> {
    const one = (ref: JobRef) =>
      this.#job.waitFor({ kind: "job", target: `${ref.jobType}/${ref.id}`, id: ref.id }, () =>
        ref.wait({ signal: this.#job.signal }).orThrow(),
      );
    return AsyncResult.try(async () => {
      // One after the other is as good as all at once: it is over when the last one is.
      const snapshots: JobSnapshot[] = [];
      for (const ref of this.#refs) snapshots.push(await one(ref));
      return snapshots;
    }, asJobFailure);
  }
}

function childId<P, R, U>(
  queue: JobCalls<P, R, U>,
  parent: { readonly queue: string; readonly jobId: string },
  step: string,
): string {
  return queue.derivedId("child", [parent.queue, parent.jobId, step]);
}

function over(): CancelledError {
  return new CancelledError({ reason: "stopped", message: "The attempt is over" });
}
