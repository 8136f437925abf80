import { JOB_LANES, type JobLane, type JobsBinding, type JobWorkerPresence } from "@trellis/protocol/jobs";
import { LookAhead } from "../events/look-ahead.ts";
import { PullLoop, type PullState } from "../jetstream/pull-loop.ts";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { within } from "../lifecycle/within.ts";
import { recordJob, recordJobRunning, recordJobWait } from "../telemetry/job-metrics.ts";
import { CancelWatch } from "./cancel-watch.ts";
import type { JobAttempt } from "./job-attempt.ts";
import { JobEntry } from "./job-entry.ts";
import { type RunOptions, runJob } from "./job-run.ts";
import { JobSettlement, type Outcome } from "./job-settlement.ts";
import { LaneQueue } from "./lane-queue.ts";
import type { QueueEnvironment } from "./queue-environment.ts";
import { RateGate } from "./rate-gate.ts";
import { SlotKeeper } from "./slot-keeper.ts";

export interface JobWorkerOptions extends Omit<RunOptions, "onWaiting"> {
  readonly binding: JobsBinding;
  /** What this connection's inboxes begin with. */
  readonly inbox: string;
  /** Handlers that run at a time. */
  readonly concurrency: number;
}

/** What handlers get to end after their signal was aborted at a stop, ms. */
const abortGraceMs = 250;
/** What is kept of a stop's time for handing back, ms. */
const handBackMs = 500;
/** What was delivered for a queue that cannot be read or entered now comes again after so long, ms. */
const pauseMs = 500;
/** Parked jobs that are on their way to the broker at a time. */
const parking = 64;

/**
 * The jobs of one queue in this process: takes them, has them handled, settles each.
 *
 * Invariants:
 * J1. No more than `concurrency` handlers run. A handler that waits for something else, and a settlement, take no place.
 * J2. A message that came is always on its way to one of its ends: it waits, is entered, runs, is settled or given back.
 */
export class JobWorker {
  readonly #queue: QueueEnvironment;
  readonly #options: JobWorkerOptions;
  readonly #loops: readonly PullLoop[];
  readonly #lanes = new LaneQueue<PulledMessage>();
  readonly #ahead: LookAhead;
  readonly #watch: CancelWatch;
  readonly #slots: SlotKeeper;
  readonly #entry: JobEntry;
  readonly #settlement: JobSettlement;
  readonly #gate: RateGate | undefined;
  readonly #run: RunOptions;
  /** Attempts whose handlers have not ended, by job. */
  readonly #running = new Map<string, JobAttempt>();
  /** Handlers' places that are taken. */
  #places = 0;
  #settling = 0;
  #stopping: Promise<void> | undefined;
  #stopped = false;
  #onQuiet: (() => void) | undefined;

  constructor(options: JobWorkerOptions) {
    const { queue, concurrency } = options;
    this.#queue = queue;
    this.#options = options;
    this.#ahead = new LookAhead(concurrency);
    this.#slots = new SlotKeeper(queue);
    this.#watch = new CancelWatch(queue, {
      onCancelled: (jobId) => this.#running.get(jobId)?.abort("cancelled"),
      onMoved: (jobId, token) => this.#onMoved(jobId, token),
      concerns: (jobId) => this.#running.has(jobId),
      onResumed: () => this.#onResumed(),
    });
    this.#entry = new JobEntry({ queue, watch: this.#watch, slots: this.#slots });
    this.#settlement = new JobSettlement(queue, () => this.#stopped);
    this.#run = { ...options, onWaiting: (_, waiting) => this.#onWaiting(waiting) };
    const { rateLimit } = queue.policy;
    if (rateLimit !== null && !rateLimit.perKey)
      this.#gate = new RateGate(queue, rateLimit, () => this.#pump());
    this.#loops = [...JOB_LANES.map((lane) => this.#laneLoop(lane)), this.#delayedLoop()];
  }

  get name(): string {
    return this.#queue.name;
  }

  /** Of the lanes the one that fares worst. */
  get state(): PullState {
    const states = this.#loops.map(({ state }) => state);
    return states.find(({ phase }) => phase === "failing") ?? states[0] ?? { phase: "idle" };
  }

  /** What heartbeats tell of it. */
  get presence(): JobWorkerPresence {
    const { name: queue, running, state } = this;
    const failing = state.phase === "failing" ? { failing: state.reason.slice(0, 200) } : {};
    return { queue, concurrency: this.#options.concurrency, running, ...failing };
  }

  /** Handlers that run now. */
  get running(): number {
    return this.#running.size;
  }

  start(): void {
    this.#watch.start();
    for (const loop of this.#loops) loop.start();
  }

  /**
   * Gives back what has not begun and waits for what has, within the deadline; then aborts it, and hands back what does
   * not end: it loses no attempt, and its key's slot is free.
   */
  stop(deadline: Deadline = Deadline.never()): Promise<void> {
    this.#stopping ??= this.#stop(deadline);
    return this.#stopping;
  }

  async #stop(deadline: Deadline): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    for (const message of this.#lanes.drain()) message.nak();
    this.#gate?.stop();
    if (!(await this.#quiet(deadline.remaining() - abortGraceMs - handBackMs)))
      await this.#cutShort(deadline);
    this.#stopped = true;
    this.#watch.stop();
    this.#slots.stop();
  }

  async #cutShort(deadline: Deadline): Promise<void> {
    for (const attempt of this.#running.values()) attempt.abort("stopping");
    if (await this.#quiet(Math.min(abortGraceMs, deadline.remaining()))) return;
    const { log } = this.#queue.link;
    const left = [...this.#running.values()];
    if (left.length > 0)
      log.warn(
        { queue: this.name, running: left.length },
        "Job handlers did not end; their jobs are handed back",
      );
    for (const attempt of left) {
      attempt.givenUp = true;
      attempt.ended = true;
      this.#running.delete(attempt.jobId);
      this.#settleLater(attempt, { kind: "handed-back" });
    }
    await this.#quiet(Math.max(handBackMs, deadline.remaining()));
  }

  #laneLoop(lane: JobLane): PullLoop {
    return this.#loop(lane, this.#ahead.prefetch, (message) => {
      if (this.#stopping !== undefined) return message.nak();
      this.#lanes.add(lane, message);
      this.#pump();
    });
  }

  /** Jobs that are made for later go to the broker's own schedule: they hold nothing here. */
  #delayedLoop(): PullLoop {
    return this.#loop("delayed", parking, (message) => {
      this.#entry.park(message).catch((error: unknown) => this.#giveBack(message, error));
    });
  }

  #loop(lane: JobLane | "delayed", prefetch: number, onMessage: (message: PulledMessage) => void): PullLoop {
    const { binding, inbox } = this.#options;
    const bound = binding.queues[this.#queue.name];
    if (bound === undefined) throw new TypeError(`The queue ${this.#queue.name} is not bound.`);
    return new PullLoop(this.#queue.link, {
      stream: binding.stream,
      consumer: bound.work[lane],
      inbox,
      ackWaitMs: bound.ackWaitMs,
      prefetch,
      onMessage,
    });
  }

  #pump(): void {
    const { concurrency } = this.#options;
    while (this.#stopping === undefined && this.#places < concurrency && this.#lanes.size > 0) {
      if (this.#gate?.take(Math.min(this.#lanes.size, concurrency)) === false) return;
      const message = this.#lanes.take();
      if (message === undefined) return;
      this.#places += 1;
      void this.#work(message);
    }
  }

  async #work(message: PulledMessage): Promise<void> {
    const { clock } = this.#queue.link;
    let attempt: JobAttempt | undefined;
    try {
      const entered = this.#entry.enter(message);
      attempt = entered instanceof Promise ? await entered : entered;
    } catch (error) {
      this.#giveBack(message, error);
    }
    if (attempt === undefined) return this.#free();
    this.#running.set(attempt.jobId, attempt);
    recordJobWait(this.name, this.#queue.clock.now() - Math.max(attempt.facts.due, attempt.facts.createdAt));
    recordJobRunning(this.name, 1);
    const outcome = await runJob(attempt, this.#run);
    recordJobRunning(this.name, -1);
    const ranFor = clock.monotonic() - attempt.startedAt;
    recordJob(this.name, outcome.kind === "ended" ? outcome.type : outcome.kind, ranFor);
    if (attempt.givenUp) return this.#free();
    if (this.#running.get(attempt.jobId) === attempt) this.#running.delete(attempt.jobId);
    this.#record(ranFor);
    this.#settleLater(attempt, outcome);
    this.#free();
  }

  #free(): void {
    this.#places -= 1;
    this.#pump();
    this.#tellQuiet();
  }

  #record(ms: number): void {
    this.#ahead.record(ms);
    const { prefetch } = this.#ahead;
    for (const loop of this.#loops.slice(0, JOB_LANES.length)) {
      // Small changes are not worth a look at what to ask for.
      if (Math.abs(loop.prefetch - prefetch) * 8 > prefetch) loop.prefetch = prefetch;
    }
  }

  #settleLater(attempt: JobAttempt, outcome: Outcome): void {
    const { link } = this.#queue;
    link.wheel.cancel(attempt);
    this.#settling += 1;
    this.#settlement
      .settle(attempt, outcome)
      .catch((error: unknown) =>
        link.log.error({ err: error, queue: this.name }, "A job could not be settled"),
      )
      .finally(() => {
        this.#slots.drop(attempt);
        this.#settling -= 1;
        this.#tellQuiet();
      });
  }

  #giveBack(message: PulledMessage, error: unknown): void {
    const { link } = this.#queue;
    if (!link.isClosed)
      link.log.warn({ err: error, queue: this.name }, "A job could not be taken up; it comes again");
    message.nak(pauseMs);
  }

  /** Its handler waits for something else: another may run meanwhile. */
  #onWaiting(waiting: boolean): void {
    this.#places += waiting ? -1 : 1;
    if (waiting) this.#pump();
  }

  /** Another attempt was begun at a job that runs here, or it was displaced. */
  #onMoved(jobId: string, token: string | undefined): void {
    const attempt = this.#running.get(jobId);
    if (attempt !== undefined && attempt.token !== token) attempt.abort("lost-lease");
  }

  /** The connection was down: cancels and take-overs were not heard. */
  #onResumed(): void {
    for (const attempt of this.#running.values()) void this.#entry.check(attempt);
  }

  /** True when nothing runs and nothing is being settled any more, before `ms` are over. */
  #quiet(ms: number): Promise<boolean> {
    if (this.#isQuiet) return Promise.resolve(true);
    if (ms <= 0) return Promise.resolve(false);
    return within(new Promise<void>((resolve) => (this.#onQuiet = resolve)), Math.min(ms, 2 ** 31 - 1));
  }

  get #isQuiet(): boolean {
    return this.#running.size === 0 && this.#settling === 0;
  }

  #tellQuiet(): void {
    if (this.#isQuiet) this.#onQuiet?.();
  }
}
