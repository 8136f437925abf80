import {
  dueAt,
  type KeyLimits,
  keyLimits,
  readJobSubject,
  readWorkSubject,
  STATE_AFTER,
  takeSlot,
  timeLeft,
} from "@trellis/protocol/jobs";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import type { CancelWatch } from "./cancel-watch.ts";
import { JobAttempt } from "./job-attempt.ts";
import { factsOfCreated, type JobFacts, jobEvent } from "./job-facts.ts";
import { decideIntake, type Intake } from "./job-intake.ts";
import type { Written } from "./job-store.ts";
import type { QueueEnvironment } from "./queue-environment.ts";
import { reserve } from "./rate-gate.ts";
import { readSilence, type Silence, silenceBody } from "./silence.ts";
import type { SlotKeeper } from "./slot-keeper.ts";

export interface JobEntryOptions {
  readonly queue: QueueEnvironment;
  readonly watch: CancelWatch;
  readonly slots: SlotKeeper;
}

/** A first attempt that is over sooner is settled without its start being written, ms. */
const foldMs = 5;
const maxLooks = 20;
/** No attempt's token: only what no attempt has taken is let go of. */
const nobody = "";
const unsettled = { tries: 1, failures: 0, crashes: 0 } as const;

/** A job that may run, as far as its transitions tell. */
interface Beginning {
  readonly facts: JobFacts;
  readonly message: PulledMessage;
  readonly intake: Extract<Intake, { kind: "run" }>;
  readonly silent?: Silence | undefined;
}

/**
 * What comes before a handler: is the job still to be run, may it now, does it have its key's slot, is its start stored.
 *
 * Invariants:
 * E1. But for a first delivery no handler runs before its attempt's start is stored: crashes are counted by that.
 * E2. A message that leads to no attempt is settled here, after everything that its job needs is stored.
 */
export class JobEntry {
  readonly #queue: QueueEnvironment;
  readonly #watch: CancelWatch;
  readonly #slots: SlotKeeper;
  readonly #limits: KeyLimits | undefined;

  constructor({ queue, watch, slots }: JobEntryOptions) {
    this.#queue = queue;
    this.#watch = watch;
    this.#slots = slots;
    this.#limits = keyLimits(queue.policy);
  }

  /** The attempt to run; `undefined` when there is none, and the message is settled. */
  enter(message: PulledMessage): JobAttempt | undefined | Promise<JobAttempt | undefined> {
    const { store, clock } = this.#queue;
    const { deliveries, sequence, storedAt } = message.facts;
    if (deliveries > 1 || message.subject.startsWith(store.subjects.work)) return this.#look(message);
    const read = store.read(message.subject, message.data);
    if (read?.event.eventType !== "created") return this.#look(message);
    const facts = factsOfCreated({ event: read.event, sequence, at: clock.instantOf(storedAt) });
    const cancelled = this.#watch.isCancelled(facts.jobId, sequence);
    if (typeof cancelled !== "boolean")
      return cancelled.then((was) => (was ? this.#look(message) : this.#fresh(facts, message)));
    return cancelled ? this.#look(message) : this.#fresh(facts, message);
  }

  /** Hands a job that was made for later to the broker's schedule. */
  async park(message: PulledMessage): Promise<void> {
    const { store, clock } = this.#queue;
    const read = store.read(message.subject, message.data);
    if (read === undefined) return this.#unreadable(message);
    const { jobId, priority: lane = "normal" } = read.event;
    await store.park({ jobId, lane }, dueAt(read.event, clock.instantOf(message.facts.storedAt)));
    message.ack();
  }

  /** Whether an attempt is still the one that its job waits for: asked after the connection was down. */
  async check(attempt: JobAttempt): Promise<void> {
    const last = await this.#queue.store.last(attempt.jobId).catch(() => undefined);
    if (last === undefined || last.sequence <= attempt.sequence || last.event.token === attempt.token) return;
    attempt.abort(last.event.state === "cancelled" ? "cancelled" : "lost-lease");
  }

  #fresh(facts: JobFacts, message: PulledMessage): JobAttempt | undefined | Promise<JobAttempt | undefined> {
    const { policy, clock, link } = this.#queue;
    if (facts.deadline !== undefined && timeLeft(facts, clock.now()) <= 0) return this.#look(message);
    if (facts.key !== undefined && (this.#limits !== undefined || policy.rateLimit?.perKey === true))
      return this.#begin({ facts, message, intake: { kind: "run", counts: unsettled, stale: false } });
    const attempt = this.#attempt(facts, message, unsettled);
    link.wheel.schedule(attempt, foldMs);
    return attempt;
  }

  /** The long way: by what is stored of the job. */
  async #look(message: PulledMessage): Promise<JobAttempt | undefined> {
    const { store, clock, policy, link } = this.#queue;
    const reading = readJobSubject(store.subjects, message.subject);
    const jobId = reading?.jobId ?? readWorkSubject(store.subjects, message.subject)?.jobId;
    if (jobId === undefined) return this.#unreadable(message);
    const silent = reading === undefined ? readSilence(link.platform.port, message.data) : undefined;
    const { sequence, deliveries } = message.facts;
    for (let look = 0; look < maxLooks; look += 1) {
      const facts = await this.#queue.facts(jobId);
      const call = { sequence, deliveries, now: clock.now(), silent };
      const intake = decideIntake(facts, call, policy.maxCrashes);
      if (facts === undefined || intake.kind === "drop") {
        message.ack();
        return undefined;
      }
      // Its last attempt ended with a retry, and its worker before it could let go of the slot.
      if (deliveries > 1 && facts.state === "retry" && facts.token !== undefined)
        await this.#queue.releaseKey(facts, { token: facts.token, repair: true });
      if (intake.kind === "run") return this.#begin({ facts, message, intake, silent });
      if (intake.kind === "park") {
        await store.park(facts, intake.at);
        message.ack();
        return undefined;
      }
      if (intake.kind === "end" && (await this.#end(facts, intake)).kind === "lost") continue;
      // A slot that was taken is let go of by its holder, which may still be at work; or its own message tells that it is lost.
      const held = facts.source !== sequence;
      await this.#queue.releaseKey(facts, { repair: true, ...(held && { token: nobody }) });
      message.ack();
      return undefined;
    }
    throw new Error("a job changed again and again while it was to be taken up");
  }

  #end(facts: JobFacts, { type, error }: Extract<Intake, { kind: "end" }>): Promise<Written> {
    const event = jobEvent(facts, this.#queue.stamp(), { eventType: type, state: STATE_AFTER[type], error });
    return this.#queue.store.write({ event, expected: facts.sequence });
  }

  /** Rate, slot, start: in this order, so that what is given up again on the way is little. */
  async #begin({ facts, message, intake, silent }: Beginning): Promise<JobAttempt | undefined> {
    if (!(await this.#hasPermit(facts, message))) return undefined;
    const attempt = this.#attempt(facts, message, intake.counts);
    if (intake.stale) attempt.abort("stale-attempt");
    else if (!(await this.#hasSlot(attempt, silent))) return undefined;
    attempt.start = { kind: "written" };
    try {
      const written = await this.#writeStart(attempt);
      if (written.kind === "stored") {
        attempt.sequence = written.sequence;
        return attempt;
      }
      await this.#letGo(attempt);
    } catch (error) {
      await this.#letGo(attempt).catch(() => undefined);
      throw error;
    }
    // Cancelled, or taken up by another: what is stored now decides.
    return this.#look(message);
  }

  async #hasPermit(facts: JobFacts, message: PulledMessage): Promise<boolean> {
    const { policy, store, clock } = this.#queue;
    const { rateLimit } = policy;
    if (rateLimit === null || !rateLimit.perKey || facts.key === undefined) return true;
    const { limit, perMs } = rateLimit;
    const { granted, retryAfterMs } = await reserve(this.#queue, `r.${facts.key}`, { limit, perMs, want: 1 });
    if (granted > 0) return true;
    await store.park(facts, clock.now() + retryAfterMs);
    message.ack();
    return false;
  }

  async #hasSlot(attempt: JobAttempt, silent: Silence | undefined): Promise<boolean> {
    const { keys, policy, store, clock } = this.#queue;
    const limits = this.#limits;
    const { facts, message, token } = attempt;
    if (limits === undefined || facts.key === undefined) return true;
    const taking = await keys.changeKey(facts.key, (record) => {
      const taken = takeSlot(record, limits, { job: facts.jobId, lane: facts.lane, token, silent });
      return { record: taken.kind === "held" ? record : taken.record, value: taken };
    });
    if (taking.kind === "taken") {
      this.#slots.hold(attempt);
      return true;
    }
    if (taking.kind === "held") {
      // Its last attempt may still be alive somewhere. The call that the broker makes later brings along what was seen.
      const ttlMs = policy.keyConcurrency?.heartbeatTtlMs ?? 0;
      await store.park(facts, clock.now() + ttlMs, silenceBody(taking));
    }
    message.ack();
    return false;
  }

  async #letGo(attempt: JobAttempt): Promise<void> {
    if (attempt.slotAliveAt === undefined) return;
    this.#slots.drop(attempt);
    await this.#queue.releaseKey(attempt.facts, { token: attempt.token });
  }

  #attempt(facts: JobFacts, message: PulledMessage, counts: JobAttempt["counts"]): JobAttempt {
    return new JobAttempt({
      facts,
      message,
      counts,
      token: this.#queue.newId(),
      now: this.#queue.link.clock.monotonic(),
      onLate: (attempt) => this.#onLate(attempt),
    });
  }

  /** It takes longer than what is folded: others are to see that it runs. */
  #onLate(attempt: JobAttempt): void {
    if (attempt.ended || attempt.start.kind !== "folded") return;
    const done = this.#writeStart(attempt).then(
      (written) => {
        attempt.start = { kind: "written" };
        if (written.kind === "stored") attempt.sequence = written.sequence;
        else attempt.abort(written.last?.event.state === "cancelled" ? "cancelled" : "lost-lease");
      },
      (error: unknown) => {
        this.#queue.link.log.warn(
          { err: error, queue: this.#queue.name },
          "A job's start could not be stored",
        );
        attempt.start = { kind: "folded" };
      },
    );
    attempt.start = { kind: "writing", done };
  }

  #writeStart(attempt: JobAttempt): Promise<Written> {
    const { facts, counts, token, message } = attempt;
    const event = jobEvent({ ...facts, counts }, this.#queue.stamp(), {
      eventType: "started",
      state: "active",
      token,
      source: message.facts.sequence,
      ...(facts.retryReason === "stale-attempt" && { retryReason: facts.retryReason }),
    });
    return this.#queue.store.write({ event, expected: attempt.sequence });
  }

  #unreadable(message: PulledMessage): undefined {
    const { link, name } = this.#queue;
    link.log.error(
      { queue: name, sequence: message.facts.sequence },
      "A job's message cannot be read; it is left out",
    );
    message.term();
    return undefined;
  }
}
