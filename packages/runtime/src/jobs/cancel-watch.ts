import type { Subscription } from "@nats-io/nats-core";
import { readJobSubject } from "@trellis/protocol/jobs";
import type { QueueEnvironment } from "./queue-environment.ts";

export interface WatchHandlers {
  /** A job was cancelled; it may run here. */
  onCancelled(jobId: string): void;
  /** An attempt at a job was begun or displaced somewhere; `token`: of the one that was begun. */
  onMoved(jobId: string, token: string | undefined): void;
  /** Whether anybody here cares about the job. */
  concerns(jobId: string): boolean;
  /** The connection was down: things may have happened unheard. */
  onResumed(): void;
}

/** Cancellations that are remembered at a time; beyond it they are forgotten and read again. */
const maxRemembered = 20_000;

/**
 * The cancellations of a queue, so that a job which was cancelled while it waited is not run. They are heard live; what
 * was stored before is read once, from the oldest message on whose job is about to be run.
 *
 * Invariant W1: `isCancelled` of a message knows every cancellation that is stored behind it, but for those that are
 * still on their way here.
 */
export class CancelWatch {
  readonly #queue: QueueEnvironment;
  readonly #handlers: WatchHandlers;
  readonly #cancelled = new Set<string>();
  readonly #subscriptions: Subscription[] = [];
  #unlisten: (() => void) | undefined;
  /** Every cancellation stored from here on is known. */
  #from = Number.POSITIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(queue: QueueEnvironment, handlers: WatchHandlers) {
    this.#queue = queue;
    this.#handlers = handlers;
  }

  start(): void {
    const { link, store } = this.#queue;
    const listen = (event: string, onMessage: (jobId: string, data: Uint8Array) => void) => {
      const subscription = link.broker.subscribe(`${store.subjects.live}.*.${event}`, {
        onMessage: ({ subject, data }) => {
          const reading = readJobSubject(store.subjects, subject);
          if (reading !== undefined) onMessage(reading.jobId, data);
        },
        onDenied: (error) =>
          link.log.error({ err: error, queue: this.#queue.name }, "Cancels cannot be heard"),
      });
      this.#subscriptions.push(subscription);
    };
    listen("cancelled", (jobId) => this.#onCancelled(jobId));
    listen("started", (jobId, data) => this.#onMoved(jobId, "started", data));
    listen("retry", (jobId, data) => this.#onMoved(jobId, "retry", data));
    this.#unlisten = link.listen({
      onDown: () => this.#forget(),
      onUp: () => this.#handlers.onResumed(),
    });
  }

  stop(): void {
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
    this.#unlisten?.();
    this.#cancelled.clear();
  }

  /** Whether the job of a message was cancelled; a promise the first time, when the past is to be read. */
  isCancelled(jobId: string, sequence: number): boolean | Promise<boolean> {
    if (sequence >= this.#from) return this.#cancelled.has(jobId);
    return this.#catchUp(sequence).then(() => this.#cancelled.has(jobId));
  }

  async #catchUp(sequence: number): Promise<void> {
    while (sequence < this.#from) {
      this.#reading ??= this.#read(sequence).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
  }

  async #read(sequence: number): Promise<void> {
    if (this.#cancelled.size > maxRemembered) this.#cancelled.clear();
    await this.#queue.store.transitionsFrom("cancelled", sequence, (jobId) => this.#cancelled.add(jobId));
    this.#from = sequence;
  }

  #onCancelled(jobId: string): void {
    if (this.#cancelled.size >= maxRemembered) this.#forget();
    this.#cancelled.add(jobId);
    this.#handlers.onCancelled(jobId);
  }

  #onMoved(jobId: string, event: "started" | "retry", data: Uint8Array): void {
    if (!this.#handlers.concerns(jobId)) return;
    const { store } = this.#queue;
    const read = store.read(`${store.subjects.live}.${jobId}.${event}`, data);
    if (read !== undefined) this.#handlers.onMoved(jobId, read.event.token);
  }

  #forget(): void {
    this.#cancelled.clear();
    this.#from = Number.POSITIVE_INFINITY;
  }
}
