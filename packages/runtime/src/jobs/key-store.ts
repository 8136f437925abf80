import {
  decodeJsonBytes,
  KV_DELETED,
  KV_OPERATION_HEADER,
  KV_WRITE_HEADER,
  kvEntryKind,
  kvPrefix,
  kvStreamName,
  type Port,
  toBase64Url,
  UnexpectedError,
  utf8Bytes,
} from "@trellis/protocol";
import { EMPTY_KEY, isEmptyKey, type KeyRecord, readKeyRecord } from "@trellis/protocol/jobs";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { JetStreamPublisher, PublishError, WRONG_LAST_SEQUENCE } from "../jetstream/publisher.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import { sleep } from "../lifecycle/backoff.ts";

export interface KeyStoreOptions {
  readonly port: Port;
  readonly requests: BrokerRequests;
  readonly bucket: string;
  readonly queue: string;
  readonly timeoutMs: number;
}

/** A change of a record: what is to stand there, and what it means to the caller. `record` as it was: nothing to write. */
export interface RecordChange<R, T> {
  readonly record: R;
  readonly value: T;
}

/** A kind of record. `ttlMs`: it goes away by itself so long after its last change. */
export interface RecordKind<R> {
  readonly empty: R;
  readonly ttlMs?: number;
  read(body: unknown): R | undefined;
  isEmpty(record: R): boolean;
}

const keyRecords: RecordKind<KeyRecord> = { empty: EMPTY_KEY, read: readKeyRecord, isEmpty: isEmptyKey };
const maxTries = 200;
const markerTtlSeconds = 60;
const nothing = new Uint8Array(0);

/**
 * Small records of a queue under compare-and-set: keys and rates. A record that says nothing is removed. Writers of one
 * record in this process go one at a time; those of other processes meet at the broker, and try again after a pause
 * that grows with their number.
 */
export class KeyStore {
  readonly #options: KeyStoreOptions;
  readonly #publisher: JetStreamPublisher;
  readonly #reader: StreamReader;
  readonly #prefix: string;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: KeyStoreOptions) {
    this.#options = options;
    this.#publisher = new JetStreamPublisher(options.requests);
    this.#reader = new StreamReader(options.requests, kvStreamName(options.bucket));
    this.#prefix = `${kvPrefix(options.bucket)}.${options.queue}`;
  }

  /** Changes the record of a key; `change` is asked again whenever another writer was quicker. */
  changeKey<T>(hash: string, change: (record: KeyRecord) => RecordChange<KeyRecord, T>): Promise<T> {
    return this.change(`k.${hash}`, keyRecords, change);
  }

  async readKey(hash: string): Promise<KeyRecord> {
    return (await this.#read(`${this.#prefix}.k.${hash}`, keyRecords)).record;
  }

  /** Every key that has a record, with the record. */
  async *keys(): AsyncGenerator<{ readonly hash: string; readonly record: KeyRecord }> {
    for (let from = 1; ; ) {
      const page = await this.#reader.page(
        { filter: `${this.#prefix}.k.*`, from, limit: 512 },
        { timeoutMs: this.#options.timeoutMs },
      );
      const { records, complete } = page.orThrow();
      for (const stored of records) {
        const record = this.#decode(stored, keyRecords);
        const hash = stored.subject.split(".").at(-1) ?? "";
        if (record !== undefined && !isEmptyKey(record)) yield { hash, record };
      }
      const last = records.at(-1);
      if (complete || last === undefined) return;
      from = last.sequence + 1;
    }
  }

  change<R, T>(name: string, kind: RecordKind<R>, change: (record: R) => RecordChange<R, T>): Promise<T> {
    const subject = `${this.#prefix}.${name}`;
    const turn = (this.#turns.get(subject) ?? Promise.resolve()).then(() =>
      this.#change(subject, kind, change),
    );
    const settled = turn.catch(() => undefined);
    this.#turns.set(subject, settled);
    void settled.then(() => {
      if (this.#turns.get(subject) === settled) this.#turns.delete(subject);
    });
    return turn;
  }

  async #change<R, T>(
    subject: string,
    kind: RecordKind<R>,
    change: (record: R) => RecordChange<R, T>,
  ): Promise<T> {
    const id = toBase64Url(this.#options.port.random(12));
    for (let attempt = 1; attempt <= maxTries; attempt += 1) {
      const { record, revision } = await this.#read(subject, kind);
      const { record: wanted, value } = change(record);
      if (wanted === record) return value;
      if (await this.#write(subject, { kind, record: wanted, revision, id: `${id}.${attempt}` }))
        return value;
      // The more often it was beaten the more writers there are.
      await sleep(Math.min(100, 2 * attempt) * Math.random());
    }
    throw new UnexpectedError({
      cause: new Error(`a record was changed by others ${maxTries} times in a row`),
    });
  }

  async #write<R>(
    subject: string,
    write: { kind: RecordKind<R>; record: R; revision: number; id: string },
  ): Promise<boolean> {
    const removes = write.kind.isEmpty(write.record);
    try {
      await this.#publisher.publish(subject, removes ? nothing : utf8Bytes(JSON.stringify(write.record)), {
        headers: { [KV_WRITE_HEADER]: write.id, ...(removes && { [KV_OPERATION_HEADER]: KV_DELETED }) },
        expectLastSubjectSequence: write.revision,
        ttlSeconds: removes ? markerTtlSeconds : ttlSeconds(write.kind.ttlMs),
        repeatable: true,
        timeoutMs: this.#options.timeoutMs,
      });
      return true;
    } catch (error) {
      if (!(error instanceof PublishError) || error.errCode !== WRONG_LAST_SEQUENCE) throw error;
    }
    // Our own, of a write whose answer was lost?
    const found = await this.#last(subject);
    return found?.get(KV_WRITE_HEADER) === write.id;
  }

  async #read<R>(subject: string, kind: RecordKind<R>) {
    const found = await this.#last(subject);
    if (found === undefined) return { record: kind.empty, revision: 0 };
    return { record: this.#decode(found, kind) ?? kind.empty, revision: found.sequence };
  }

  /** A record that cannot be read counts as empty: a key that is stuck for good would be worse. */
  #decode<R>(stored: StoredRecord, kind: RecordKind<R>): R | undefined {
    if (kvEntryKind(stored).kind === "deleted") return undefined;
    const body = decodeJsonBytes(this.#options.port, stored.data);
    return body.ok ? kind.read(body.value) : undefined;
  }

  async #last(subject: string): Promise<StoredRecord | undefined> {
    return (await this.#reader.lastOf(subject, { timeoutMs: this.#options.timeoutMs })).orThrow();
  }
}

function ttlSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.max(1, Math.ceil(ms / 1_000));
}
