import {
  KV_DELETED,
  KV_OPERATION_HEADER,
  KV_VERSION_HEADER,
  KV_WRITE_HEADER,
  KVError,
  kvEntryKind,
  type Port,
  toBase64Url,
} from "@trellis/protocol";
import type { RequestOptions } from "../jetstream/broker-request.ts";
import { type JetStreamPublisher, PublishError, WRONG_LAST_SEQUENCE } from "../jetstream/publisher.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { StreamReader } from "../jetstream/stream-reader.ts";
import { sleep } from "../lifecycle/backoff.ts";
import { Deadline } from "../lifecycle/deadline.ts";

/** One write, encoded. */
export interface KvWrite {
  readonly key: string;
  /** Subject of the key. */
  readonly subject: string;
  /** `undefined` deletes. */
  readonly data: Uint8Array | undefined;
  readonly version: number;
  readonly ttlSeconds: number | undefined;
  readonly options: RequestOptions;
}

type Attempt =
  | { readonly stored: number }
  /** Somebody else was there: what stands under the key now. */
  | { readonly current: StoredRecord | undefined };

const nothing = new Uint8Array(0);

/**
 * Writes to a bucket. A write on a condition is a compare-and-set by the broker, and carries an id of its own: when its
 * answer was lost it goes again, and what stands under the key then tells whether the first one was stored. So it
 * has an outcome whenever there is one to be had. An unconditional one whose answer was lost has none: to send
 * it again could undo what others wrote meanwhile.
 */
export class KvWriter {
  readonly #port: Port;
  readonly #publisher: JetStreamPublisher;
  readonly #reader: StreamReader;

  constructor(port: Port, publisher: JetStreamPublisher, reader: StreamReader) {
    this.#port = port;
    this.#publisher = publisher;
    this.#reader = reader;
  }

  /** Writes whatever was there; gives the revision. */
  async put(write: KvWrite): Promise<number> {
    const { subject, data, ttlSeconds, options } = write;
    const ack = await this.#publisher.publish(subject, data ?? nothing, {
      ...options,
      headers: headersOf(write),
      ttlSeconds,
    });
    return ack.seq;
  }

  /** Writes only over nothing: a key that never was, was deleted, or has expired. */
  async create(write: KvWrite): Promise<number> {
    const deadline = Deadline.after(write.options.timeoutMs);
    const id = this.#newId();
    let expected = 0;
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.#attempt(write, { expected, id, deadline });
      if ("stored" in outcome) return outcome.stored;
      const { current } = outcome;
      if (current !== undefined && kvEntryKind(current).kind !== "deleted")
        throw new KVError({ reason: "exists", key: write.key, revision: current.sequence });
      // Deleted, or gone meanwhile: the next attempt goes over that. Every turn means that another writer got on.
      expected = current?.sequence ?? 0;
      if (attempt > 2) await this.#pause(attempt, write.options);
    }
  }

  /** Writes over one revision only. */
  async replace(write: KvWrite, revision: number): Promise<number> {
    const deadline = Deadline.after(write.options.timeoutMs);
    const outcome = await this.#attempt(write, { expected: revision, id: this.#newId(), deadline });
    if ("stored" in outcome) return outcome.stored;
    const now = outcome.current?.sequence;
    throw new KVError({
      reason: "revision_mismatch",
      key: write.key,
      ...(now !== undefined && { revision: now }),
      details: { expected: revision },
    });
  }

  async #attempt(
    write: KvWrite,
    condition: { expected: number; id: string; deadline: Deadline },
  ): Promise<Attempt> {
    const { expected, id, deadline } = condition;
    const options = { timeoutMs: deadline.remaining(), signal: write.options.signal };
    try {
      const ack = await this.#publisher.publish(write.subject, write.data ?? nothing, {
        ...options,
        headers: { ...headersOf(write), [KV_WRITE_HEADER]: id },
        expectLastSubjectSequence: expected,
        ttlSeconds: write.ttlSeconds,
        repeatable: true,
      });
      return { stored: ack.seq };
    } catch (error) {
      if (!(error instanceof PublishError) || error.errCode !== WRONG_LAST_SEQUENCE) throw error;
    }
    const found = await this.#reader.last(write.subject, { ...options, timeoutMs: deadline.remaining() });
    if (found.isErr()) throw found.error;
    const current = found.value;
    // Our own, of an attempt whose answer was lost.
    return current?.get(KV_WRITE_HEADER) === id ? { stored: current.sequence } : { current };
  }

  async #pause(attempt: number, { signal }: RequestOptions): Promise<void> {
    await sleep(Math.min(50, attempt) * (0.5 + Math.random()), { signal });
  }

  #newId(): string {
    return toBase64Url(this.#port.random(12));
  }
}

function headersOf({ data, version }: KvWrite): Readonly<Record<string, string>> | undefined {
  if (data === undefined) return { [KV_OPERATION_HEADER]: KV_DELETED };
  return version === 1 ? undefined : { [KV_VERSION_HEADER]: String(version) };
}
