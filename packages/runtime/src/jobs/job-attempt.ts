import type { AttemptCounts } from "@trellis/protocol/jobs";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import { LazySignal } from "../lifecycle/signals.ts";
import { WheelEntry } from "../lifecycle/timer-wheel.ts";
import type { Timer } from "../lifecycle/timers.ts";
import { type JobAbortReason, jobAborted } from "./job-abort.ts";
import type { JobFacts } from "./job-facts.ts";

/** How an attempt's start stands in the stream. */
export type StartState =
  /** Not written: a quick first attempt is settled without. */
  | { readonly kind: "folded" }
  | { readonly kind: "writing"; readonly done: Promise<void> }
  | { readonly kind: "written" };

/** One attempt at a job in this process, from its start until it is settled. Waits in the wheel to have its start written. */
export class JobAttempt extends WheelEntry {
  readonly facts: JobFacts;
  readonly message: PulledMessage;
  readonly token: string;
  readonly counts: AttemptCounts;
  readonly stop = new LazySignal();
  readonly startedAt: number;
  start: StartState = { kind: "folded" };
  /** Of the last transition of the job that is known to be ours to follow. */
  sequence: number;
  /** Monotonic ms of the last sign of life of its key's slot that was stored; `undefined` without a key. */
  slotAliveAt: number | undefined;
  deadlineTimer: Timer | undefined;
  /** The handler has come to its end, or nobody waits for it any more. */
  ended = false;
  /** Handed back at a stop: whatever the handler still does is of no interest. */
  givenUp = false;
  abortedFor: JobAbortReason | undefined;
  updates = 0;
  readonly #onLate: (attempt: JobAttempt) => void;

  constructor(input: {
    readonly facts: JobFacts;
    readonly message: PulledMessage;
    readonly token: string;
    readonly counts: AttemptCounts;
    readonly now: number;
    readonly onLate: (attempt: JobAttempt) => void;
  }) {
    super();
    this.facts = input.facts;
    this.message = input.message;
    this.token = input.token;
    this.counts = input.counts;
    this.startedAt = input.now;
    this.sequence = input.facts.sequence;
    this.#onLate = input.onLate;
  }

  get jobId(): string {
    return this.facts.jobId;
  }

  /** The first reason counts. */
  abort(reason: JobAbortReason): void {
    if (this.ended || this.abortedFor !== undefined) return;
    this.abortedFor = reason;
    this.stop.abort(jobAborted(reason));
  }

  override expire(): void {
    this.#onLate(this);
  }
}
