import {
  CancelledError,
  encodeJson,
  encodeStoreKey,
  type ObjectMeta,
  type Port,
  type StoreBinding,
  storeKeyProblem,
  storeMetaPrefix,
  storeStreamName,
  TimeoutError,
  type ValidationError,
} from "@trellis/protocol";
import { AsyncResult } from "@trellis/result";
import type { RequestOptions } from "../jetstream/broker-request.ts";
import type { BrokerRequests, RequestLink } from "../jetstream/broker-requests.ts";
import { JetStreamPublisher } from "../jetstream/publisher.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import { StreamFollower } from "../jetstream/stream-follower.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { deadlineSignal } from "../lifecycle/signals.ts";
import { objectBytes } from "./object-bytes.ts";
import { listObjects } from "./object-list.ts";
import { infoOf, ObjectMetas, objectOf } from "./object-metas.ts";
import { ObjectPut } from "./object-put.ts";
import { openSource } from "./object-source.ts";
import { bytesOf, streamOf } from "./object-stream.ts";
import { sweepOrphans } from "./orphan-sweep.ts";
import type {
  ObjectStore,
  StoreEntry,
  StoreInfo,
  StoreListOptions,
  StoreOptions,
  StorePage,
  StorePutOptions,
  StoreSource,
} from "./store.ts";
import { invalidArgument, type StoreFailure, storeFailure } from "./store-failure.ts";

export interface StoreInput {
  readonly link: RequestLink & {
    readonly platform: { readonly port: Port };
    readonly clock: { /** The server's time, ms since 1970. */ now(): number };
  };
  readonly requests: BrokerRequests;
  readonly binding: StoreBinding;
  /** Default time-out of an answer, ms. */
  readonly timeoutMs: number;
}

const maxMetadataBytes = 32 * 1024;
/** Few enough for a slow socket to stay alive, enough to cost little each. */
const chunkBytes = 256 * 1024;
/** A put whose newest chunk is older than this is dead: one that lives sends more within a minute. */
const orphanAgeMs = 3_600_000;
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** A store that exists, in the layout of NATS' own object store. */
export class StreamObjectStore implements ObjectStore {
  readonly #input: StoreInput;
  readonly #reader: StreamReader;
  readonly #metas: ObjectMetas;

  constructor(input: StoreInput) {
    const { requests, binding, link } = input;
    const { port } = link.platform;
    this.#input = input;
    this.#reader = new StreamReader(requests, storeStreamName(binding.name));
    const publisher = new JetStreamPublisher(requests);
    this.#metas = new ObjectMetas({ name: binding.name, port, reader: this.#reader, publisher });
  }

  /** A description that no key has. */
  get #nowhere(): string {
    return `${storeMetaPrefix(this.#input.binding.name)}.-`;
  }

  /** Whether the store is there: `store_missing` when it does not answer. */
  probe(options: StoreOptions = {}): AsyncResult<void, StoreFailure> {
    return AsyncResult.try(
      async () => void (await this.#reader.last(this.#nowhere, this.#options(options))).orThrow(),
      (thrown) => storeFailure(thrown),
    );
  }

  /** Removes what killed puts left behind, when it is older than an hour; gives how many they were. */
  async sweep(olderThanMs = orphanAgeMs): Promise<number> {
    const { link, requests, binding } = this.#input;
    const common = { link, requests, metas: this.#metas, name: binding.name };
    return sweepOrphans({ ...common, olderThanMs, now: link.clock.now() });
  }

  create(
    key: string,
    source: StoreSource,
    options: StorePutOptions = {},
  ): AsyncResult<StoreInfo, StoreFailure> {
    return this.#put({ key, source, options }, true);
  }

  put(key: string, source: StoreSource, options: StorePutOptions = {}): AsyncResult<StoreInfo, StoreFailure> {
    return this.#put({ key, source, options }, false);
  }

  get(key: string, options: StoreOptions = {}): AsyncResult<StoreEntry | undefined, StoreFailure> {
    return this.#run(key, async () => {
      const found = objectOf(key, await this.#metas.find(key, this.#options(options)));
      return found === undefined ? undefined : this.#entry(found, this.#options(options));
    });
  }

  head(key: string, options: StoreOptions = {}): AsyncResult<StoreInfo | undefined, StoreFailure> {
    return this.#run(key, async () => {
      const found = objectOf(key, await this.#metas.find(key, this.#options(options)));
      return found === undefined ? undefined : infoOf(found.meta, found.record.storedAt);
    });
  }

  delete(key: string, options: StoreOptions = {}): AsyncResult<boolean, StoreFailure> {
    return this.#run(key, () => this.#putter().remove(key, this.#options(options)));
  }

  list(options: StoreListOptions = {}): AsyncResult<StorePage, StoreFailure> {
    const { prefix = "", cursor, limit = 100 } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > 500)
      return AsyncResult.err(invalidArgument("/limit", "must be a whole number from 1 to 500"));
    return AsyncResult.try(
      async () => {
        const budget = this.#budget(options);
        try {
          const { link, binding } = this.#input;
          const common = { link, reader: this.#reader, metas: this.#metas, name: binding.name };
          return await listObjects({ ...common, prefix, cursor, limit, signal: budget.signal });
        } catch (error) {
          throw cause(error, budget.signal);
        } finally {
          budget.unlink();
        }
      },
      (thrown) => storeFailure(thrown),
    );
  }

  waitFor(key: string, options: StoreOptions = {}): AsyncResult<StoreInfo, StoreFailure> {
    return this.#run(key, async () => {
      const { timeout } = options;
      const budget = deadlineSignal(timeout === undefined ? Deadline.never() : Deadline.after(timeout), {
        signal: options.signal,
        reason: () => new TimeoutError(timeout === undefined ? {} : { timeoutMs: timeout }),
      });
      try {
        return await this.#await(key, budget.signal);
      } catch (error) {
        throw cause(error, budget.signal);
      } finally {
        budget.unlink();
      }
    });
  }

  #put(
    { key, source, options }: { key: string; source: StoreSource; options: StorePutOptions },
    create: boolean,
  ): AsyncResult<StoreInfo, StoreFailure> {
    const pieces = openSource(source);
    const problem = argumentProblem(options);
    if (problem !== undefined) {
      pieces.cancel(problem);
      return AsyncResult.err(problem);
    }
    const { contentType, metadata = {} } = options;
    const requestOptions = this.#options(options);
    return this.#run(key, async () => {
      const request = {
        key,
        pieces,
        contentType,
        metadata: { ...metadata },
        options: requestOptions,
        create,
      };
      const { meta, sequence, cleared } = await this.#putter().run(request);
      const [storedAt] = await Promise.all([this.#storedAt(sequence, requestOptions), cleared]);
      return infoOf(meta, storedAt);
    });
  }

  #putter(): ObjectPut {
    const { requests, binding, link } = this.#input;
    return new ObjectPut({
      requests,
      port: link.platform.port,
      metas: this.#metas,
      stream: storeStreamName(binding.name),
      name: binding.name,
      maxBytes: binding.maxObjectBytes ?? undefined,
      // Subject and headers need their share of a message.
      chunkBytes: Math.min(chunkBytes, link.broker.maxPayload - 1_024),
    });
  }

  /** When the server stored a description; when that is no longer to be told, about now. */
  async #storedAt(sequence: number, options: RequestOptions): Promise<Date> {
    const found = await this.#reader.at(sequence, options);
    return (found.isOk() ? found.value?.storedAt : undefined) ?? new Date(this.#input.link.clock.now());
  }

  #entry(found: { meta: ObjectMeta; record: StoredRecord }, options: RequestOptions): StoreEntry {
    const { meta, record } = found;
    const { link, binding } = this.#input;
    const common = { port: link.platform.port, reader: this.#reader, metas: this.#metas, name: binding.name };
    const open = () => objectBytes({ ...common, meta, record, options });
    return {
      info: infoOf(meta, record.storedAt),
      stream: () => streamOf(open(), meta.key),
      bytes: () =>
        AsyncResult.try(
          () => bytesOf(open()),
          (thrown) => storeFailure(thrown, meta.key),
        ),
    };
  }

  async #await(key: string, signal: AbortSignal): Promise<StoreInfo> {
    const { link, binding } = this.#input;
    const token = encodeStoreKey(key);
    const follower = new StreamFollower({
      link,
      reader: this.#reader,
      filter: `${storeMetaPrefix(binding.name)}.${token}`,
      live: `${binding.watch}.${token}`,
      contiguous: false,
      ages: true,
      signal,
    });
    try {
      for (;;) {
        const followed = await follower.next();
        if (followed.kind === "failed") throw followed.error;
        if (followed.kind === "end") throw new CancelledError({ reason: "stopped" });
        if (followed.kind !== "record") continue;
        const found = this.#metas.read(key, followed.record);
        if (found.kind === "object") return infoOf(found.meta, found.record.storedAt);
      }
    } finally {
      follower.stop();
    }
  }

  #budget({ timeout, signal }: StoreOptions) {
    const timeoutMs = timeout ?? this.#input.timeoutMs;
    const reason = () => new TimeoutError({ timeoutMs });
    return deadlineSignal(Deadline.after(timeoutMs), { signal, reason });
  }

  #run<T>(key: string, work: () => Promise<T>): AsyncResult<T, StoreFailure> {
    const problem = storeKeyProblem(key);
    if (problem !== undefined) return AsyncResult.err(invalidArgument("/key", problem));
    return AsyncResult.try(work, (thrown) => storeFailure(thrown, key));
  }

  #options({ timeout, signal }: StoreOptions): RequestOptions {
    return { timeoutMs: timeout ?? this.#input.timeoutMs, signal };
  }
}

/** What a signal of ours says counts more than that it was aborted. */
function cause(error: unknown, signal: AbortSignal): unknown {
  return signal.aborted && signal.reason instanceof TimeoutError ? signal.reason : error;
}

function argumentProblem({ contentType, metadata }: StorePutOptions): ValidationError | undefined {
  if (contentType !== undefined && !PRINTABLE.test(contentType))
    return invalidArgument("/contentType", "must be printable ASCII of at most 255 characters");
  if (metadata === undefined) return undefined;
  for (const [name, value] of Object.entries(metadata))
    if (typeof value !== "string") return invalidArgument(`/metadata/${name}`, "must be text");
  const encoded = encodeJson({ ...metadata });
  if (!encoded.ok) return invalidArgument("/metadata", encoded.issues[0]?.message ?? "cannot be kept");
  if (encoded.text.length > maxMetadataBytes)
    return invalidArgument("/metadata", `is larger than ${maxMetadataBytes} bytes`);
  return undefined;
}
