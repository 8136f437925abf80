import type { JobPolicy } from "@trellis/contract";
import { encodeToken, JobNotEnqueuedError } from "@trellis/protocol";
import { latestSlot, nextSlot, slotJobId, timetableProblem } from "@trellis/protocol/jobs";
import { backoffDelay } from "../lifecycle/backoff.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { JobCreator } from "./job-creator.ts";
import type { RecordKind } from "./key-store.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

type Schedule = JobPolicy["schedules"][string];

/** Since when a time table holds: what lies before was never missed. */
interface Since {
  readonly table: string;
  readonly since: number;
}

const sinceKind: RecordKind<Since | undefined> = {
  empty: undefined,
  read: readSince,
  isEmpty: (record) => record === undefined,
};

/** Longer sleeps are cut, so that a machine that slept looks at the clock again, ms. */
const longestSleepMs = 60_000;
/** A slot that is later than this counts as missed, ms. */
const lateMs = 60_000;
const again = { initial: 250, max: 10_000 };

/**
 * Makes the jobs of a queue's time tables, in every replica: the id of a slot's job follows from the slot, so that all of
 * them together make it once. Time is the broker's.
 */
export class ScheduleRunner {
  readonly #queue: QueueEnvironment;
  readonly #creator: JobCreator;
  readonly #timers = new Map<string, { readonly timer: Timer; readonly wake: () => void }>();
  readonly #unlisten: () => void;
  #stopped = false;

  constructor(queue: QueueEnvironment, creator: JobCreator) {
    this.#queue = queue;
    this.#creator = creator;
    this.#unlisten = queue.clock.onJump(() => this.#onJump());
  }

  /** Throws when a time table cannot be kept. */
  start(): void {
    for (const [name, schedule] of Object.entries(this.#queue.policy.schedules)) {
      const problem = timetableProblem(schedule);
      if (problem !== undefined)
        throw new TypeError(
          `The schedule "${name}" of the queue ${this.#queue.name} cannot be kept: ${problem}`,
        );
      void this.#begin(name, schedule, 1);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#unlisten();
    for (const { timer } of this.#timers.values()) timer.clear();
  }

  async #begin(name: string, schedule: Schedule, attempt: number): Promise<void> {
    const now = this.#queue.clock.now();
    try {
      const since = await this.#since(name, schedule, now);
      const missed = schedule.missed === "once" ? latestSlot(schedule, now) : undefined;
      // Older than an id is remembered it may have been made up before: once is better missed than made twice.
      const remembered = now - this.#queue.store.horizonMs / 2;
      if (missed !== undefined && missed > since && missed > remembered)
        await this.#fire(name, schedule, missed);
      this.#wait(name, schedule, nextSlot(schedule, now));
    } catch (error) {
      this.#queue.link.log.warn({ err: error, schedule: name }, "A schedule could not begin; trying again");
      this.#sleep(name, backoffDelay(attempt, again), () => void this.#begin(name, schedule, attempt + 1));
    }
  }

  #wait(name: string, schedule: Schedule, slot: number | undefined): void {
    if (slot === undefined) return;
    const left = slot - this.#queue.clock.now();
    if (left > 0)
      return this.#sleep(name, Math.min(left, longestSleepMs), () => this.#wait(name, schedule, slot));
    void this.#due(name, schedule, slot);
  }

  async #due(name: string, schedule: Schedule, slot: number): Promise<void> {
    const now = this.#queue.clock.now();
    const latest = latestSlot(schedule, now) ?? slot;
    const late = now - slot > lateMs;
    if (!late) await this.#insist(name, schedule, slot);
    else if (schedule.missed === "once") await this.#insist(name, schedule, latest);
    this.#wait(name, schedule, nextSlot(schedule, late ? Math.max(slot, latest) : slot));
  }

  /** Until the slot's job is there, or the slot is so late that it counts as missed. */
  async #insist(name: string, schedule: Schedule, slot: number): Promise<void> {
    for (let attempt = 1; !this.#stopped && !this.#queue.link.isClosed; attempt += 1) {
      try {
        return await this.#fire(name, schedule, slot);
      } catch (error) {
        this.#queue.link.log.warn({ err: error, schedule: name }, "A scheduled job could not be made");
        if (this.#queue.clock.now() - slot > lateMs && schedule.missed === "skip") return;
        await new Promise<void>((resolve) => this.#sleep(name, backoffDelay(attempt, again), resolve));
      }
    }
  }

  async #fire(name: string, schedule: Schedule, slot: number): Promise<void> {
    const { link, name: queue } = this.#queue;
    const id = slotJobId(link.platform.port, { queue, schedule: name, at: slot });
    const trigger = { kind: "schedule", name, id: new Date(slot).toISOString() } as const;
    const made = await this.#creator.submit(undefined, schedule.payload, { id, trigger });
    if (made.isErr() && !(made.error instanceof JobNotEnqueuedError)) throw made.error;
    if (made.isOk() && made.value.kind === "rejected")
      link.log.info({ queue, schedule: name }, "A scheduled job was not taken: its key is busy");
  }

  /** Since when this very time table holds, by the first replica that ran it. */
  #since(name: string, { cron, timeZone }: Schedule, now: number): Promise<number> {
    const table = `${cron} ${timeZone}`;
    return this.#queue.keys.change(`s.${encodeToken(name)}`, sinceKind, (record) => {
      if (record?.table === table) return { record, value: record.since };
      return { record: { table, since: Math.round(now) }, value: Math.round(now) };
    });
  }

  /** The clock was set: every sleeper looks at it again. */
  #onJump(): void {
    const sleeping = [...this.#timers.values()];
    this.#timers.clear();
    for (const { timer, wake } of sleeping) {
      timer.clear();
      wake();
    }
  }

  #sleep(name: string, ms: number, wake: () => void): void {
    if (this.#stopped) return;
    this.#timers.set(name, { timer: systemTimers.set(wake, ms, { background: true }), wake });
  }
}

function readSince(body: unknown): Since | undefined {
  if (typeof body !== "object" || body === null || !("table" in body) || !("since" in body)) return undefined;
  const { table, since } = body;
  return typeof table === "string" && typeof since === "number" ? { table, since } : undefined;
}
