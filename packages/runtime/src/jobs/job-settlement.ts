import {
  isTerminalState,
  type JobError,
  type JobEvent,
  type JobTransitionType,
  retryDecision,
  STATE_AFTER,
} from "@trellis/protocol/jobs";
import { backoffDelay, sleep } from "../lifecycle/backoff.ts";
import type { JobAttempt } from "./job-attempt.ts";
import { jobEvent } from "./job-facts.ts";
import type { Written } from "./job-store.ts";
import { nextTurn } from "./next-turn.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: "completed"; readonly result: string | undefined }
  /** To be tried again, if it may. */
  | { readonly kind: "retry"; readonly error: JobError }
  | {
      readonly kind: "ended";
      readonly type: "failed" | "expired" | "stale" | "dead";
      readonly error: JobError;
    }
  /** Somebody else has settled it, or taken it over: what the handler did is not recorded. */
  | { readonly kind: "displaced"; readonly error: JobError }
  /** A stop took it from its handler; it goes on elsewhere, and has lost no attempt. */
  | { readonly kind: "handed-back" };

/** What is reported of a settled attempt. */
export type Settled = JobTransitionType | "displaced" | "abandoned";

/** Retries up to this delay stay with the broker's consumer; longer ones are parked. */
const shortDelayMs = 1_000;
const again = { initial: 100, max: 5_000 };

/**
 * Records how an attempt ended, lets go of what it held, and tells the broker.
 *
 * Invariants:
 * T1. The message is acknowledged only after everything that its job needs is stored: the outcome, the calls to those
 *     that come into its place, the schedule of its retry. A crash before that brings the message again, and whoever
 *     gets it finds in the job's transitions what is left to do.
 * T2. An outcome is stored only behind the attempt's own start; an attempt that lost its job only leaves a note.
 */
export class JobSettlement {
  readonly #queue: QueueEnvironment;
  readonly #isStopped: () => boolean;

  constructor(queue: QueueEnvironment, isStopped: () => boolean) {
    this.#queue = queue;
    this.#isStopped = isStopped;
  }

  async settle(attempt: JobAttempt, outcome: Outcome): Promise<Settled> {
    await nextTurn();
    if (attempt.start.kind === "writing") await attempt.start.done;
    if (outcome.kind === "displaced")
      return this.#displaced(attempt, outcome.error, attempt.abortedFor === "cancelled");
    const settling = this.#eventOf(attempt, outcome);
    let written = await this.#write(attempt, settling);
    const last = written?.kind === "lost" ? written.last : undefined;
    if (last?.event.eventType === "started" && last.event.token === attempt.token) {
      // Its own start, of which the answer was lost.
      attempt.sequence = last.sequence;
      written = await this.#write(attempt, settling);
    }
    if (written === undefined) return "abandoned";
    if (written.kind === "lost") {
      const over = written.last === undefined || isTerminalState(written.last.event.state);
      return this.#displaced(attempt, settling.event.error ?? tooLate, over);
    }
    return this.#after(attempt, settling);
  }

  #write(attempt: JobAttempt, { event, result }: Settling): Promise<Written | undefined> {
    return this.#stubbornly(() =>
      this.#queue.store.write({
        event,
        expected: attempt.sequence,
        ...(result !== undefined && { value: { name: "result" as const, text: result } }),
      }),
    );
  }

  async #after(attempt: JobAttempt, { event, delayMs }: Settling): Promise<Settled> {
    const { store, clock } = this.#queue;
    const type = event.eventType as JobTransitionType;
    if (!(await this.#letGo(attempt))) return "abandoned";
    if (delayMs === undefined) attempt.message.ack();
    else if (delayMs <= shortDelayMs) attempt.message.nak(delayMs);
    else {
      const at = clock.now() + delayMs;
      const parked = await this.#stubbornly(async () => {
        await store.park({ jobId: attempt.jobId, lane: attempt.facts.lane }, at);
        return true;
      });
      if (parked === undefined) return "abandoned";
      attempt.message.ack();
    }
    return type;
  }

  /** Lost: the record is somebody else's. What is left is a note, and the slot if it is still this attempt's. */
  async #displaced(attempt: JobAttempt, error: JobError, over: boolean): Promise<Settled> {
    const { store } = this.#queue;
    const facts = { ...attempt.facts, counts: attempt.counts };
    const note = jobEvent(facts, this.#queue.stamp(), {
      eventType: "staleCompletionIgnored",
      state: "active",
      error,
      token: attempt.token,
    });
    await store.note(note).catch((cause: unknown) => {
      this.#queue.link.log.debug({ err: cause, queue: this.#queue.name }, "A stale completion was not noted");
    });
    if (!(await this.#letGo(attempt))) return "abandoned";
    // Of a job that is not over the message is another attempt's: acknowledged here, it could not come again for that one.
    if (over) attempt.message.ack();
    else attempt.message.drop();
    return "displaced";
  }

  async #letGo(attempt: JobAttempt): Promise<boolean> {
    if (attempt.slotAliveAt === undefined) return true;
    const released = await this.#stubbornly(async () => {
      await this.#queue.releaseKey(attempt.facts, { token: attempt.token });
      return true;
    });
    attempt.slotAliveAt = undefined;
    return released === true;
  }

  #eventOf(attempt: JobAttempt, outcome: Exclude<Outcome, { kind: "displaced" }>): Settling {
    const decided = this.#decide(attempt, outcome);
    const { type, own, counts = attempt.counts } = decided;
    const { link } = this.#queue;
    const folded = attempt.start.kind === "folded";
    const state = folded ? attempt.facts.state : "active";
    const event = jobEvent({ ...attempt.facts, state, counts }, this.#queue.stamp(), {
      eventType: type,
      state: STATE_AFTER[type],
      ...(folded && { ranForMs: Math.round((link.clock.monotonic() - attempt.startedAt) * 1_000) / 1_000 }),
      ...own,
    });
    return { event, result: decided.result, delayMs: decided.delayMs };
  }

  #decide(attempt: JobAttempt, outcome: Exclude<Outcome, { kind: "displaced" }>): Decided {
    const { counts } = attempt;
    switch (outcome.kind) {
      case "completed":
        return { type: "completed", own: {}, result: outcome.result };
      case "ended":
        return { type: outcome.type, own: { error: outcome.error } };
      case "handed-back":
        return {
          type: "retry",
          own: { retryReason: "handed-back" },
          counts: { ...counts, tries: Math.max(0, counts.tries - 1) },
          delayMs: 0,
        };
      case "retry": {
        const failures = counts.failures + 1;
        const decision = retryDecision(this.#queue.policy.retry, failures, Math.random());
        const failed = { ...counts, failures };
        if (decision.kind === "dead") return { type: "dead", own: { error: outcome.error }, counts: failed };
        const { delayMs } = decision;
        const own = { retryReason: "error" as const, delayMs, error: outcome.error };
        return { type: "retry", own, counts: failed, delayMs };
      }
    }
  }

  /** Until the broker has answered; `undefined` when that is of no interest any more. */
  async #stubbornly<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await write();
      } catch (error) {
        const { link, name } = this.#queue;
        if (link.isClosed || this.#isStopped()) return undefined;
        link.log.warn({ err: error, queue: name }, "A job's outcome could not be stored; trying again");
        await sleep(backoffDelay(failures + 1, again), { background: true });
      }
    }
  }
}

interface Settling {
  readonly event: JobEvent;
  readonly result?: string | undefined;
  readonly delayMs?: number | undefined;
}

interface Decided {
  readonly type: JobTransitionType;
  readonly own: Partial<JobEvent>;
  readonly counts?: JobAttempt["counts"];
  readonly result?: string | undefined;
  readonly delayMs?: number | undefined;
}

const tooLate: JobError = {
  type: "StaleCompletion",
  message: "The attempt ended after its job was settled or taken over",
};
