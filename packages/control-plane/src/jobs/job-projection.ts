import {
  type ConsumerMessages,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { decodeJsonBytes, type Port } from "@trellis/protocol";
import {
  isTerminalState,
  JOB_STATES,
  type JobSnapshot,
  jobQueueSubjects,
  readJobEvent,
  readJobSubject,
  reduceJobEvent,
  type StoredJobEvent,
} from "@trellis/protocol/jobs";
import { type Clock, sleep } from "@trellis/runtime/node";
import type { Log } from "../config/log.ts";
import { findJobs, type JobRow, pruneJobs, saveJobs } from "../storage/jobs.ts";
import type { Storage } from "../storage/storage.ts";
import { type JobsResource, jobResources } from "./job-resources.ts";

export interface JobProjectionDeps {
  readonly nats: NatsConnection;
  readonly storage: Storage;
  readonly port: Port;
  readonly clock: Clock;
  readonly log: Log;
  /** How long jobs of a queue that are over are shown, ms. */
  retention(deployment: string, queue: string): Promise<number>;
}

interface Reading {
  readonly resource: JobsResource;
  readonly messages: ConsumerMessages;
  buffer: JsMsg[];
  working: boolean;
}

interface Event extends StoredJobEvent {
  readonly queue: string;
  readonly id: string;
  readonly sequence: number;
}

const durable = "platform_jobs";
/** Events that are under way at once. */
const underWay = 2_000;
/** Events of one transaction; what happens to a job within them is written once. Nothing else runs in its time. */
const batch = 250;
/** How long it waits for more that could be taken in with the first, ms. */
const gatherMs = 20;
/** Of the time that a transaction took, it waits so much before the next one. */
const pauseShare = 3;
const maxPauseMs = 1_000;
const live = JOB_STATES.filter((state) => !isTerminalState(state));
const pruneLimit = 500;

/**
 * Keeps a picture of every job in SQL, for lists and counts. The streams are the truth: the picture follows them
 * through one durable consumer a stream and is as old as its unread messages.
 *
 * Invariants:
 * J1. Events are acknowledged after the transaction that took them in; those that come again are known by their sequence.
 * J2. An event that cannot be read is left out, and stops nothing.
 */
export class JobProjection {
  readonly #deps: JobProjectionDeps;
  readonly #readings = new Map<string, Reading>();
  #stopped = false;
  #syncing: Promise<void> = Promise.resolve();

  constructor(deps: JobProjectionDeps) {
    this.#deps = deps;
  }

  /** Begins to read the streams that are not read yet, and forgets jobs that are too old. Repeated by the upkeep. */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.then(() => this.#sync());
    return this.#syncing;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#readings.values()].map(({ messages }) => messages.close()));
    this.#readings.clear();
    await this.#syncing;
  }

  async #sync(): Promise<void> {
    if (this.#stopped) return;
    const resources = await jobResources(this.#deps.storage.queries);
    const manager = await jetstreamManager(this.#deps.nats, { checkAPI: false });
    for (const resource of resources) {
      await this.#prune(resource);
      if (this.#stopped || this.#readings.has(resource.stream)) continue;
      await this.#open(manager, resource);
    }
  }

  async #open(manager: JetStreamManager, resource: JobsResource): Promise<void> {
    const { stream } = resource;
    await manager.consumers.add(stream, {
      durable_name: durable,
      ack_policy: "all",
      deliver_policy: "all",
      filter_subjects: ["jobs.v1.>", "jobnotes.v1.>"],
      max_ack_pending: 2 * underWay,
      ack_wait: 30_000_000_000,
    });
    const consumer = await jetstream(this.#deps.nats, { checkAPI: false }).consumers.get(stream, durable);
    const messages = await consumer.consume({ max_messages: underWay });
    const reading: Reading = { resource, messages, buffer: [], working: false };
    this.#readings.set(stream, reading);
    void this.#read(reading);
  }

  async #read(reading: Reading): Promise<void> {
    try {
      for await (const message of reading.messages) {
        reading.buffer.push(message);
        if (!reading.working) void this.#drain(reading);
      }
    } catch (error) {
      this.#warn("read_failed", reading, error);
    } finally {
      // The next sync opens it again, if it is still there.
      if (this.#readings.get(reading.resource.stream) === reading)
        this.#readings.delete(reading.resource.stream);
    }
  }

  /**
   * Takes in what has come, everything that comes meanwhile with the next transaction. Between two it gives way: the
   * picture may be late, and those who do the jobs need the machine, the broker and this process.
   */
  async #drain(reading: Reading): Promise<void> {
    reading.working = true;
    try {
      await sleep(gatherMs, { background: true });
      while (reading.buffer.length > 0) {
        const messages = reading.buffer.splice(0, batch);
        const started = performance.now();
        await this.#take(reading.resource, messages);
        messages.at(-1)?.ack();
        const taken = performance.now() - started;
        await sleep(Math.min(maxPauseMs, Math.max(gatherMs, taken * pauseShare)), { background: true });
      }
    } catch (error) {
      this.#warn("write_failed", reading, error);
      // Unacknowledged, they come again.
      await reading.messages.close();
    } finally {
      reading.working = false;
    }
  }

  async #take(resource: JobsResource, messages: readonly JsMsg[]): Promise<void> {
    const queues = new Map<string, Event[]>();
    for (const message of messages) {
      const event = this.#event(resource, message);
      if (event === undefined) continue;
      const events = queues.get(event.queue);
      if (events === undefined) queues.set(event.queue, [event]);
      else events.push(event);
    }
    await this.#deps.storage.transact(async (tx) => {
      for (const [queue, events] of queues) {
        const place = { deploymentId: resource.deployment, queue };
        const known = await findJobs(tx, place, [...new Set(events.map(({ id }) => id))]);
        const jobs = new Map(known.map((row) => [row.id, jobOf(row)]));
        for (const event of events) takeInto(jobs, event);
        const changed = [...jobs].filter(([, job]) => job.changed);
        await saveJobs(
          tx,
          changed.map(([id, job]) => rowOf({ ...place, id }, job)),
        );
      }
    });
  }

  #event({ deployment, secret }: JobsResource, message: JsMsg): Event | undefined {
    const queue = message.subject.split(".")[3] ?? "";
    const reading = readJobSubject(jobQueueSubjects({ deployment, queue, secret }), message.subject);
    const body = reading === undefined ? undefined : decodeJsonBytes(this.#deps.port, message.data);
    const event = reading === undefined || !body?.ok ? undefined : readJobEvent(body.value, reading);
    if (reading === undefined || event === undefined) return undefined;
    return { queue, id: reading.jobId, event, sequence: message.seq, at: message.info.timestampNanos / 1e6 };
  }

  async #prune({ deployment, queues }: JobsResource): Promise<void> {
    const { storage, clock } = this.#deps;
    for (const queue of queues) {
      const before = clock.now() - (await this.#deps.retention(deployment, queue));
      const place = { deploymentId: deployment, queue };
      while (!this.#stopped) {
        const pruned = await pruneJobs(storage.queries, place, { before, live, count: pruneLimit });
        if (pruned < pruneLimit) break;
        await sleep(gatherMs, { background: true });
      }
    }
  }

  #warn(what: string, { resource }: Reading, error: unknown): void {
    if (this.#stopped) return;
    this.#deps.log.warn(
      { code: `trellis.jobs.projection_${what}`, deployment: resource.deployment, error },
      "The picture of jobs stands still for a moment",
    );
  }
}

/** A job as a batch of events changes it. */
interface Pictured {
  readonly snapshot: JobSnapshot;
  readonly sequence: number;
  readonly changed: boolean;
}

function jobOf({ snapshot, sequence }: JobRow): Pictured {
  return { snapshot: JSON.parse(snapshot) as JobSnapshot, sequence, changed: false };
}

/** Takes one event into the picture of its job; one that is known, or of an unknown job, changes nothing. */
function takeInto(jobs: Map<string, Pictured>, stored: Event): void {
  const { id, sequence } = stored;
  const before = jobs.get(id);
  if (before !== undefined && sequence <= before.sequence) return;
  const snapshot = reduceJobEvent(before?.snapshot, stored);
  if (snapshot !== undefined) jobs.set(id, { snapshot, sequence, changed: true });
}

function rowOf(
  place: Pick<JobRow, "deploymentId" | "queue" | "id">,
  { snapshot, sequence }: Pictured,
): JobRow {
  const { state, createdAt, updatedAt, lastError } = snapshot;
  return {
    ...place,
    state,
    createdAt: Date.parse(createdAt),
    updatedAt: Date.parse(updatedAt),
    error: lastError === undefined ? null : `${lastError.type}: ${lastError.message}`.slice(0, 1_000),
    snapshot: JSON.stringify(snapshot),
    sequence,
  };
}
