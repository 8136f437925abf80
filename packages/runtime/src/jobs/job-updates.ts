import type { Subscription } from "@nats-io/nats-core";
import type { CompiledSchema } from "@trellis/contract";
import { decodeJsonBytes } from "@trellis/protocol";
import {
  isTerminalState,
  type JobUpdate,
  readJobSubject,
  readJobUpdate,
  UpdateFloor,
} from "@trellis/protocol/jobs";
import { BoundedQueue } from "../lifecycle/bounded-queue.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

/** A live update as a listener gets it. */
export interface ReceivedJobUpdate<Update> extends Omit<JobUpdate, "update"> {
  readonly update: Update;
}

/** Live updates of one job, from the moment on at which this was given. Ends with the job. */
export interface JobUpdates<Update> extends AsyncIterableIterator<ReceivedJobUpdate<Update>> {
  /** Frames that did not decode, belonged to another job, or did not fit the schema. */
  readonly skipped: number;
  unsubscribe(): void;
}

const capacity = 1_024;

/** Listens to the updates of a job. Late frames of an earlier attempt, and repeated ones, are dropped. */
export class JobUpdateListener<Update> implements JobUpdates<Update> {
  readonly #queue: BoundedQueue<ReceivedJobUpdate<Update>>;
  readonly #floor = new UpdateFloor();
  readonly #environment: QueueEnvironment;
  readonly #schema: CompiledSchema;
  readonly #jobId: string;
  readonly #subscriptions: Subscription[];
  readonly #unlisten: () => void;
  #skipped = 0;

  constructor(
    environment: QueueEnvironment,
    input: { jobId: string; schema: CompiledSchema; signal?: AbortSignal | undefined },
  ) {
    const { jobId, schema, signal } = input;
    this.#environment = environment;
    this.#schema = schema;
    this.#jobId = jobId;
    const { link, store } = environment;
    this.#queue = new BoundedQueue({
      capacity,
      overflow: "drop-oldest",
      signal,
      onClose: () => this.#close(),
    });
    const onDenied = (error: Error) => this.#queue.fail(error);
    this.#subscriptions = [
      link.broker.subscribe(`${store.subjects.updates}.${jobId}`, {
        onMessage: ({ data }) => this.#onUpdate(data),
        onDenied,
      }),
      link.broker.subscribe(`${store.subjects.live}.${jobId}.*`, {
        onMessage: ({ subject, data }) => this.#onTransition(subject, data),
        onDenied,
      }),
    ];
    this.#unlisten = link.listen({ onClosed: () => this.#queue.end() });
    if (!this.#queue.open) this.#close();
  }

  get skipped(): number {
    return this.#skipped;
  }

  next(): Promise<IteratorResult<ReceivedJobUpdate<Update>, undefined>> {
    return this.#queue.next();
  }

  return(): Promise<IteratorResult<ReceivedJobUpdate<Update>, undefined>> {
    return this.#queue.return();
  }

  unsubscribe(): void {
    this.#queue.end();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #onUpdate(data: Uint8Array): void {
    const body = decodeJsonBytes(this.#environment.link.platform.port, data);
    const frame = body.ok ? readJobUpdate(body.value, this.#jobId) : undefined;
    const decoded = frame === undefined ? undefined : this.#schema.decode(frame.update);
    if (frame === undefined || decoded?.ok !== true) {
      this.#skipped += 1;
      return;
    }
    if (this.#floor.accept(frame)) this.#queue.push({ ...frame, update: decoded.value as Update });
  }

  #onTransition(subject: string, data: Uint8Array): void {
    const { store } = this.#environment;
    if (readJobSubject(store.subjects, subject) === undefined) return;
    const read = store.read(subject, data);
    if (read === undefined) return;
    this.#floor.raise(read.event.tries);
    if (isTerminalState(read.event.state)) this.#queue.end();
  }

  #close(): void {
    // A signal that was aborted before closes the queue within its own constructor.
    for (const subscription of this.#subscriptions ?? []) subscription.unsubscribe();
    this.#unlisten?.();
  }
}
