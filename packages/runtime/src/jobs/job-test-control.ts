import {
  isTerminalState,
  type JobSnapshot,
  nextSlot,
  readJobSubject,
  reduceJobEvent,
  slotJobId,
} from "@trellis/protocol/jobs";
import { sleep } from "../lifecycle/backoff.ts";
import { environmentOf } from "./queue-calls.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

/** Steps of one `advance`: more slots than that are a mistake in the test. */
const maxSlots = 1_000;
/** How long the job of a slot may take to be stored, ms. */
const slotMs = 10_000;
/** A job that is due and does not begin is called for again, ms. */
const callAgainMs = 250;

/**
 * What tests may do with the queues of one service in this process: see what became of every job, and set the clock by
 * which they are due. For `controlJobs` of the testing kit, which gives it types.
 */
export class JobTestControl {
  readonly #calls: Readonly<Record<string, object>>;
  readonly #snapshots = new Map<string, JobSnapshot>();
  /** When a job is due, by its clock, of those that wait for that. */
  readonly #due = new Map<string, number>();
  readonly #read = new Map<string, number>();
  /** When a job was called for last, monotonic ms. */
  readonly #called = new Map<string, number>();
  #advanced = false;

  /** `calls`: `service.jobs`. */
  constructor(calls: Readonly<Record<string, object>>) {
    this.#calls = calls;
  }

  /** Every job of a queue, from the first one that the stream has, as it stands now. */
  async seen(queue: string): Promise<readonly JobSnapshot[]> {
    const environment = this.#environment(queue);
    const { store } = environment;
    const from = this.#read.get(queue) ?? 1;
    for (const record of await store.stored(from)) {
      this.#read.set(queue, record.sequence + 1);
      const reading = readJobSubject(store.subjects, record.subject);
      const read = store.read(record.subject, record.data);
      if (reading === undefined || read === undefined) continue;
      const id = `${queue}/${reading.jobId}`;
      const at = record.storedAt.getTime();
      const snapshot = reduceJobEvent(this.#snapshots.get(id), { event: read.event, at });
      if (snapshot !== undefined) this.#snapshots.set(id, snapshot);
      const { delayMs = 0, runAt } = read.event;
      this.#due.set(id, runAt ?? environment.clock.instantOf(at) + delayMs);
    }
    return [...this.#snapshots].filter(([id]) => id.startsWith(`${queue}/`)).map(([, snapshot]) => snapshot);
  }

  /** Jobs that are due, or will be within `leewayMs`, and not over; by queue and id. */
  async unfinished(leewayMs: number): Promise<readonly string[]> {
    await this.nudge();
    const left: string[] = [];
    for (const queue of Object.keys(this.#calls)) {
      const now = this.#environment(queue).clock.now();
      for (const { id, state } of await this.seen(queue)) {
        const due = this.#due.get(`${queue}/${id}`) ?? 0;
        if (!isTerminalState(state) && (state === "active" || due <= now + leewayMs))
          left.push(`${queue}/${id} (${state})`);
      }
    }
    return left;
  }

  /**
   * Sets the clock forward. Jobs that are due by then are called to work, and each time table makes the jobs of its slots
   * in their order.
   */
  async advance(ms: number): Promise<void> {
    const [first] = Object.keys(this.#calls);
    if (first === undefined) return;
    const { clock } = this.#environment(first);
    this.#advanced = true;
    const target = clock.now() + ms;
    for (let step = 0; ; step += 1) {
      const slots = this.#slotsAfter(clock.now()).filter(({ at }) => at <= target);
      const next = Math.min(...slots.map(({ at }) => at));
      if (slots.length === 0) break;
      if (step >= maxSlots)
        throw new RangeError(`Within ${ms} ms lie more than ${maxSlots} slots of time tables.`);
      await clock.advance(next + 1 - clock.now());
      for (const slot of slots) if (slot.at === next) await this.#made(slot);
    }
    await clock.advance(Math.max(0, target - clock.now()));
    this.#called.clear();
    await this.nudge();
  }

  #slotsAfter(now: number): Slot[] {
    return Object.keys(this.#calls).flatMap((queue) =>
      Object.entries(this.#environment(queue).policy.schedules).flatMap(([schedule, table]) => {
        const at = nextSlot(table, now);
        return at === undefined ? [] : [{ queue, schedule, at }];
      }),
    );
  }

  /** Resolves when the job of a slot is stored, or nobody makes it: its workers have not started, or its key is busy. */
  async #made(slot: Slot): Promise<void> {
    const { store, link } = this.#environment(slot.queue);
    const id = slotJobId(link.platform.port, slot);
    for (const end = performance.now() + slotMs; performance.now() < end; ) {
      if ((await store.last(id)) !== undefined) return;
      await sleep(5);
    }
    throw new Error(`The schedule ${slot.schedule} of ${slot.queue} made no job: has the service started?`);
  }

  /**
   * Calls for the jobs that are due by our clock: the broker calls by its own. To be repeated while somebody waits: a job
   * may just be on its way to be parked until the time that was valid before. Calling twice does no harm.
   */
  async nudge(): Promise<void> {
    if (!this.#advanced) return;
    for (const queue of Object.keys(this.#calls)) {
      const environment = this.#environment(queue);
      for (const { id, state } of await this.seen(queue)) {
        const name = `${queue}/${id}`;
        const waits = !isTerminalState(state) && state !== "active";
        if (!waits || (this.#due.get(name) ?? 0) > environment.clock.now()) continue;
        const now = performance.now();
        if (now - (this.#called.get(name) ?? Number.NEGATIVE_INFINITY) < callAgainMs) continue;
        this.#called.set(name, now);
        const facts = await environment.facts(id);
        if (facts !== undefined && !isTerminalState(facts.state))
          await environment.store.wake(facts.lane, id);
      }
    }
  }

  #environment(queue: string): QueueEnvironment {
    const calls = this.#calls[queue];
    const environment = calls === undefined ? undefined : environmentOf(calls);
    if (environment === undefined)
      throw new TypeError(`There is no queue "${queue}" of this service, or it is not bound.`);
    return environment;
  }
}

interface Slot {
  readonly queue: string;
  readonly schedule: string;
  readonly at: number;
}
