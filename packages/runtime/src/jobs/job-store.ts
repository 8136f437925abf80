import { decodeJsonBytes, type Port, utf8Bytes } from "@trellis/protocol";
import {
  type JobEvent,
  type JobLane,
  type JobNoteType,
  type JobPlace,
  type JobQueueSubjects,
  type JobSnapshot,
  type JobTransitionType,
  jobEventHeaders,
  readJobEvent,
  readJobSubject,
  reduceJob,
  type StoredJobEvent,
  transitionSubject,
  transitionsOf,
} from "@trellis/protocol/jobs";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import {
  JetStreamPublisher,
  PublishError,
  type PublishOptions,
  WRONG_LAST_SEQUENCE,
} from "../jetstream/publisher.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import { sleep } from "../lifecycle/backoff.ts";
import type { BrokerClock } from "./broker-clock.ts";
import { JobHistory } from "./job-history.ts";

/** A transition as the stream has it. */
export interface StoredTransition {
  readonly sequence: number;
  /** When the broker stored it, ms. */
  readonly at: number;
  readonly event: JobEvent;
  readonly place: JobPlace | undefined;
}

/** What became of a fenced write. `lost`: another transition was there first; it is the last one now. */
export type Written =
  | { readonly kind: "stored"; readonly sequence: number }
  | { readonly kind: "lost"; readonly last: StoredTransition | undefined };

export interface TransitionWrite {
  readonly event: JobEvent;
  /** Sequence of the last transition that the writer knows; 0: there is none. */
  readonly expected: number;
  /** Of `created` and `retried`. */
  readonly place?: JobPlace | undefined;
  /** JSON text of payload or result, when it was written already. */
  readonly value?: { readonly name: "payload" | "result"; readonly text: string } | undefined;
  readonly ttlMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface JobStoreOptions {
  readonly port: Port;
  readonly requests: BrokerRequests;
  readonly stream: string;
  readonly subjects: JobQueueSubjects;
  /** How long a settled job's id stays taken. */
  readonly horizonMs: number;
  readonly timeoutMs: number;
  /** The clock by which jobs are due. */
  readonly clock: Pick<BrokerClock, "instantOf" | "brokerInstant">;
}

const maxLooks = 12;
const lookPauseMs = 5;
const nothing = new Uint8Array(0);
const expectedSubject = "Nats-Expected-Last-Subject-Sequence-Subject";

/**
 * The jobs of one queue in the stream.
 *
 * Invariant S1: a transition is stored only directly behind the one that its writer knew, whoever else writes. When the
 * answer to a write was lost it is sent again, and the job's last transition then tells who won: our own event id, or
 * another.
 */
export class JobStore {
  readonly subjects: JobQueueSubjects;
  readonly horizonMs: number;
  readonly #options: JobStoreOptions;
  readonly #publisher: JetStreamPublisher;
  readonly #reader: StreamReader;
  readonly #history: JobHistory;

  constructor(options: JobStoreOptions) {
    this.#options = options;
    this.subjects = options.subjects;
    this.horizonMs = options.horizonMs;
    this.#publisher = new JetStreamPublisher(options.requests);
    this.#reader = new StreamReader(options.requests, options.stream);
    this.#history = new JobHistory(this.#reader, options.subjects, options.timeoutMs);
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  /** Writes a transition. Rejects with a `RequestFailure` or `PublishError` when there is no answer to be had. */
  async write(write: TransitionWrite): Promise<Written> {
    const { event, expected, place, value, ttlMs, signal } = write;
    const name = event.eventType as JobTransitionType;
    const putsToWork = name === "created" || name === "retried";
    const subject = transitionSubject(
      this.subjects,
      event.jobId,
      putsToWork ? `${name}.${place ?? "normal"}` : name,
    );
    const filter = transitionsOf(this.subjects, event.jobId);
    try {
      const ack = await this.#publish(subject, encode(event, value), {
        headers: { ...jobEventHeaders(event), [expectedSubject]: filter },
        expectLastSubjectSequence: expected,
        ttlSeconds: seconds(ttlMs ?? this.horizonMs),
        repeatable: true,
        signal,
      });
      return { kind: "stored", sequence: ack.seq };
    } catch (error) {
      if (!(error instanceof PublishError) || error.errCode !== WRONG_LAST_SEQUENCE) throw error;
    }
    const stored = await this.#behind(event.jobId, expected);
    const own = stored.find((each) => each.event.eventId === event.eventId);
    return own === undefined
      ? { kind: "lost", last: stored.at(-1) }
      : { kind: "stored", sequence: own.sequence };
  }

  /** Writes a note: it competes with nothing, and only the newest `progress` and `heartbeat` of a job are kept. */
  async note(event: JobEvent): Promise<void> {
    const type = event.eventType as JobNoteType;
    const keepsOne = type === "progress" || type === "heartbeat";
    await this.#publish(`${this.subjects.notes}.${event.jobId}.${type}`, encode(event, undefined), {
      headers: { ...jobEventHeaders(event), ...(keepsOne && { "Nats-Rollup": "sub" }) },
      ttlSeconds: seconds(this.horizonMs),
    });
  }

  /** Calls for a worker to go on with a job. Doing it twice does no harm: the job's own state decides. */
  async wake(lane: JobLane, jobId: string, body?: object): Promise<void> {
    await this.#publish(
      `${this.subjects.work}.${lane}.${jobId}`,
      body === undefined ? nothing : utf8Bytes(JSON.stringify(body)),
      { ttlSeconds: seconds(this.horizonMs), repeatable: true },
    );
  }

  /** Lets the broker call for a worker at an instant of its own clock. A second schedule of a job replaces the first. */
  async park(
    job: { readonly jobId: string; readonly lane: JobLane },
    at: number,
    body?: object,
  ): Promise<void> {
    await this.#publish(
      `${this.subjects.park}.${job.jobId}`,
      body === undefined ? nothing : utf8Bytes(JSON.stringify(body)),
      {
        headers: {
          "Nats-Schedule": `@at ${new Date(this.#options.clock.brokerInstant(at)).toISOString()}`,
          "Nats-Schedule-Target": `${this.subjects.work}.${job.lane}.${job.jobId}`,
          "Nats-Schedule-TTL": `${seconds(this.horizonMs)}s`,
        },
        repeatable: true,
      },
    );
  }

  /** A job's last transition; `undefined` when the job does not exist. */
  async last(jobId: string): Promise<StoredTransition | undefined> {
    const found = await this.#reader.lastOf(transitionsOf(this.subjects, jobId), this.#request());
    const record = found.orThrow();
    return record === undefined ? undefined : this.#transition(record);
  }

  /** Every transition of a job, in order. */
  async transitions(jobId: string): Promise<readonly StoredTransition[]> {
    const records = await this.#history.transitions(jobId);
    return records.flatMap((record) => this.#transition(record) ?? []);
  }

  /** A job as all of its events tell of it; `undefined` when it does not exist. */
  async snapshot(jobId: string): Promise<JobSnapshot | undefined> {
    const records = await this.#history.events(jobId);
    return reduceJob(records.flatMap((record) => this.#event(record) ?? []));
  }

  /** Transitions of one kind, of all jobs, from a sequence on. */
  async transitionsFrom(
    type: JobTransitionType,
    from: number,
    onEach: (jobId: string, sequence: number) => void,
  ): Promise<void> {
    for (const record of await this.#history.all(`${this.subjects.transitions}.*.${type}`, from)) {
      const reading = readJobSubject(this.subjects, record.subject);
      if (reading !== undefined) onEach(reading.jobId, record.sequence);
    }
  }

  /** Transitions of all jobs as they are stored, from a sequence on: for tests, which have few. */
  stored(from: number): Promise<readonly StoredRecord[]> {
    return this.#history.all(`${this.subjects.transitions}.>`, from);
  }

  /** The event of a message's subject and body; `undefined` when they are not one, or do not agree. */
  read(subject: string, data: Uint8Array): { event: JobEvent; place: JobPlace | undefined } | undefined {
    const reading = readJobSubject(this.subjects, subject);
    if (reading === undefined) return undefined;
    const body = decodeJsonBytes(this.#options.port, data);
    const event = body.ok ? readJobEvent(body.value, reading) : undefined;
    return event === undefined ? undefined : { event, place: reading.place };
  }

  /**
   * The transitions of a job after a refusal, which means that something stands behind `expected`. A copy of the stream
   * that does not show it yet lags behind: who reads from it must not take his own transition for lost.
   */
  async #behind(jobId: string, expected: number): Promise<readonly StoredTransition[]> {
    for (let look = 1; ; look += 1) {
      const stored = await this.transitions(jobId);
      const last = stored.at(-1)?.sequence ?? 0;
      const removed = expected > 0 && stored.length === 0;
      if (last > expected || removed || look >= maxLooks) return stored;
      await sleep(lookPauseMs * look, { background: true });
    }
  }

  #publish(subject: string, data: Uint8Array, options: Omit<PublishOptions, "timeoutMs">) {
    return this.#publisher.publish(subject, data, { ...options, timeoutMs: this.#options.timeoutMs });
  }

  #transition(record: StoredRecord): StoredTransition | undefined {
    const read = this.read(record.subject, record.data);
    return (
      read && {
        ...read,
        sequence: record.sequence,
        at: this.#options.clock.instantOf(record.storedAt.getTime()),
      }
    );
  }

  #event(record: StoredRecord): StoredJobEvent | undefined {
    const read = this.read(record.subject, record.data);
    return read && { event: read.event, at: record.storedAt.getTime() };
  }

  #request() {
    return { timeoutMs: this.#options.timeoutMs };
  }
}

function encode(event: JobEvent, value: TransitionWrite["value"]): Uint8Array {
  const text = JSON.stringify(event);
  if (value === undefined) return utf8Bytes(text);
  return utf8Bytes(`${text.slice(0, -1)},"${value.name}":${value.text}}`);
}

function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
