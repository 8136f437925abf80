import type { CompiledSchema, Duration } from "@trellis/contract";
import { parseDuration } from "@trellis/contract";
import {
  CancelledError,
  isToken,
  NotFoundError,
  TimeoutError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { isTerminalState, type JobSnapshot } from "@trellis/protocol/jobs";
import { AsyncResult } from "@trellis/result";
import { type Deferred, deferred } from "../lifecycle/deferred.ts";
import { onAbort } from "../lifecycle/on-abort.ts";
import { systemTimers } from "../lifecycle/timers.ts";
import { JobEndedError } from "./job-ended-error.ts";
import { asJobFailure } from "./job-failure.ts";
import type { JobFailure } from "./job-handler.ts";
import { JobUpdateListener, type JobUpdates } from "./job-updates.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

export interface JobWaitOptions {
  /** Default: no limit. */
  readonly timeout?: Duration;
  readonly signal?: AbortSignal | undefined;
}

export type JobRefFailure = JobFailure | NotFoundError | ValidationError;

export interface JobRefSchemas {
  readonly result: CompiledSchema | undefined;
  readonly update: CompiledSchema | undefined;
}

/** How long a waiter that has heard nothing goes without looking for itself, ms. */
const lookMs = { initial: 2_000, max: 30_000 };

/**
 * A job, named from anywhere. Everything works from what is stored: in another process, after a restart, and for a job
 * that ended before anyone looked.
 */
export class JobRef<Result = unknown, Update = unknown> {
  readonly id: string;
  readonly #queue: QueueEnvironment;
  readonly #schemas: JobRefSchemas;
  /** Only for the types. */
  declare readonly "~result": Result;

  constructor(queue: QueueEnvironment, id: string, schemas: JobRefSchemas) {
    this.#queue = queue;
    this.#schemas = schemas;
    this.id = id;
  }

  get service(): string {
    return this.#queue.service;
  }

  get jobType(): string {
    return this.#queue.name;
  }

  /** The job as it stands now. */
  get(): AsyncResult<JobSnapshot, JobRefFailure> {
    return this.#run(() => this.#read());
  }

  /** The job when it is over, however it ended. Never waits for a job that does not exist, or is no longer there. */
  wait(options: JobWaitOptions = {}): AsyncResult<JobSnapshot, JobRefFailure> {
    return this.#run(() => this.#wait(options));
  }

  /** The job's result; an error when it ended otherwise. */
  waitForResult(options: JobWaitOptions = {}): AsyncResult<Result, JobRefFailure | JobEndedError> {
    return this.#run(async () => {
      const snapshot = await this.#wait(options);
      if (snapshot.state !== "completed") throw new JobEndedError(snapshot);
      const decoded = this.#schemas.result?.decode(snapshot.result) ?? { ok: true, value: undefined };
      if (!decoded.ok) throw new ValidationError({ errors: decoded.issues });
      return decoded.value as Result;
    });
  }

  /**
   * Cancels the job, confirmed by the broker: one that is pending never runs, one that runs has its signal aborted and is
   * cancelled whatever its handler returns. Of a job that is over it gives the unchanged snapshot.
   */
  cancel(): AsyncResult<JobSnapshot, JobRefFailure> {
    return this.#run(async () => {
      const settled = await this.#queue.settle(this.id, () => ({
        eventType: "cancelled",
        state: "cancelled",
        error: { type: "Cancelled", message: "cancelled" },
      }));
      if (settled === undefined) throw this.#gone();
      // Of an active job the worker lets go; best effort here, since the job's own call to work repairs it.
      if (settled.changed && settled.facts.state !== "active")
        await this.#queue.releaseKey(settled.facts).catch(() => undefined);
      return this.#read();
    });
  }

  /** Live updates from now on; already subscribed when this resolves. */
  updates(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncResult<JobUpdates<Update>, JobRefFailure> {
    return this.#run(async () => {
      const { update } = this.#schemas;
      if (update === undefined)
        throw invalid(
          "/update",
          `The queue ${this.jobType} declares no updates: \`update\` of job({ ... }).`,
        );
      const listener = new JobUpdateListener<Update>(this.#queue, {
        jobId: this.id,
        schema: update,
        signal: options.signal,
      });
      try {
        // The broker has the subscription when it answers a request that was sent behind it.
        const snapshot = await this.#read();
        if (isTerminalState(snapshot.state)) listener.unsubscribe();
        return listener;
      } catch (error) {
        listener.unsubscribe();
        throw error;
      }
    });
  }

  #run<T>(work: () => Promise<T>): AsyncResult<T, JobRefFailure>;
  #run<T>(work: () => Promise<T>): AsyncResult<T, JobRefFailure | JobEndedError> {
    if (!isToken(this.id)) return AsyncResult.err(invalid("/id", "must be 1 to 256 of A-Z a-z 0-9 _ -"));
    return AsyncResult.try(work, (thrown) =>
      thrown instanceof NotFoundError || thrown instanceof ValidationError || thrown instanceof JobEndedError
        ? thrown
        : asJobFailure(thrown),
    );
  }

  async #read(): Promise<JobSnapshot> {
    const snapshot = await this.#queue.store.snapshot(this.id);
    if (snapshot === undefined) throw this.#gone();
    return snapshot;
  }

  /**
   * Listens first and reads then, so that no end is missed between; and reads again now and then, and after every
   * reconnect, so that a lost message costs a while and never hangs.
   */
  async #wait({ timeout, signal }: JobWaitOptions): Promise<JobSnapshot> {
    const { link, store } = this.#queue;
    const ended = deferred<never>();
    // Nobody may listen yet when it rejects.
    ended.promise.catch(() => undefined);
    let news: Deferred<void> = deferred();
    const look = () => news.resolve();
    const subscription = link.broker.subscribe(`${store.subjects.live}.${this.id}.*`, {
      onMessage: look,
      onDenied: (error) => ended.reject(error),
    });
    const unlisten = [
      link.listen({ onUp: look, onClosed: (reason) => ended.reject(closed(reason)) }),
      signal === undefined ? () => {} : this.#endsWith(signal, ended),
      timeout === undefined ? () => {} : endsAfter(parseDuration(timeout, "timeout"), ended),
    ];
    try {
      if (link.isClosed) throw new UnavailableError({ reason: "closed" });
      for (let pause = lookMs.initial; ; pause = Math.min(lookMs.max, pause * 2)) {
        news = deferred();
        const last = await Promise.race([this.#isOver(), ended.promise]);
        if (last) return await Promise.race([this.#read(), ended.promise]);
        const timer = systemTimers.set(look, pause);
        await Promise.race([news.promise, ended.promise]).finally(() => timer.clear());
      }
    } finally {
      subscription.unsubscribe();
      for (const stop of unlisten) stop();
    }
  }

  /** False also where the broker did not answer in time: a waiter looks again. */
  async #isOver(): Promise<boolean> {
    try {
      const last = await this.#queue.store.last(this.id);
      if (last === undefined) throw this.#gone();
      return isTerminalState(last.event.state);
    } catch (error) {
      if (error instanceof TimeoutError) return false;
      throw error;
    }
  }

  #endsWith(signal: AbortSignal, ended: Deferred<never>): () => void {
    const aborted = (cause: unknown) => ended.reject(new CancelledError({ reason: "aborted", cause }));
    if (signal.aborted) aborted(signal.reason);
    return onAbort(signal, aborted);
  }

  #gone(): NotFoundError {
    return new NotFoundError({
      message: `There is no job ${this.id} in ${this.jobType}, or it is no longer kept`,
    });
  }
}

function endsAfter(ms: number, ended: Deferred<never>): () => void {
  const timer = systemTimers.set(() => ended.reject(new TimeoutError({ timeoutMs: ms })), ms);
  return () => timer.clear();
}

function closed(reason: string): CancelledError | UnavailableError {
  return reason === "stopped" ? new CancelledError({ reason }) : new UnavailableError({ reason: "closed" });
}

function invalid(path: string, message: string): ValidationError {
  return new ValidationError({ errors: [{ path, message }] });
}
