import { type KvResource, parseDuration } from "@trellis/contract";
import {
  CancelledError,
  decodeKvKey,
  encodeKvKey,
  KVError,
  type KvBinding,
  kvKeyProblem,
  kvPrefix,
  kvPrefixFilter,
  kvStreamName,
  type Port,
  ValidationError,
} from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import type { RequestOptions } from "../jetstream/broker-request.ts";
import type { BrokerRequests, RequestLink } from "../jetstream/broker-requests.ts";
import { JetStreamPublisher } from "../jetstream/publisher.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import { StreamFollower } from "../jetstream/stream-follower.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import type {
  Kv,
  KvDeleteOptions,
  KvGetOptions,
  KvListing,
  KvListOptions,
  KvOptions,
  KvPutOptions,
  KvReplaceOptions,
  KvWatch,
  KvWatchOptions,
} from "./kv.ts";
import type { KvEntry, KvInvalid, KvRevision, KvStored } from "./kv-entry.ts";
import { invalidKey, type KvFailure, kvFailure } from "./kv-failure.ts";
import { KvInitial } from "./kv-initial.ts";
import { KvPages } from "./kv-listing.ts";
import { KvValues } from "./kv-values.ts";
import { KvWatching } from "./kv-watch.ts";
import { type KvWrite, KvWriter } from "./kv-writer.ts";

export interface KvBucketInput {
  readonly link: RequestLink & { readonly platform: { readonly port: Port } };
  readonly requests: BrokerRequests;
  readonly binding: KvBinding;
  readonly resource: Pick<KvResource, "value" | "version" | "migrate">;
  /** Values are given as they were written, in whatever version: for tools that show them. */
  readonly asStored?: boolean;
  /** Default time-out of an operation, ms. */
  readonly timeoutMs: number;
}

type Keys = { readonly prefix: string } | { readonly key: string };

/** A bucket that exists. It opens nothing, makes nothing, and holds nothing but what is under way. */
export class KvBucket implements Kv<unknown, unknown> {
  readonly #input: KvBucketInput;
  readonly #prefix: string;
  readonly #reader: StreamReader;
  readonly #writer: KvWriter;
  readonly #values: KvValues;

  constructor(input: KvBucketInput) {
    const { link, requests, binding, resource, asStored = false } = input;
    const { value, version, migrate } = resource;
    this.#input = input;
    this.#prefix = `${kvPrefix(binding.bucket)}.`;
    this.#reader = new StreamReader(requests, kvStreamName(binding.bucket));
    this.#writer = new KvWriter(link.platform.port, new JetStreamPublisher(requests), this.#reader);
    const maxValueBytes = binding.maxValueBytes ?? undefined;
    const ttlMs = binding.ttlMs ?? undefined;
    this.#values = new KvValues(link.platform.port, {
      value,
      version,
      migrate,
      asStored,
      maxValueBytes,
      ttlMs,
    });
  }

  get(key: string, options: KvGetOptions = {}): AsyncResult<KvEntry<unknown> | undefined, KvFailure> {
    const subject = this.#subject(key);
    if (subject.isErr()) return AsyncResult.err(subject.error);
    const { result, resolve } = AsyncResult.deferred<KvEntry<unknown> | undefined, KvFailure>();
    const { revision } = options;
    const settle = (found: Result<StoredRecord | undefined, KvFailure>) =>
      resolve(this.#entry(key, found, subject.value));
    if (revision === undefined) this.#reader.readLast(subject.value, this.#options(options), settle);
    else void this.#reader.at(revision, this.#options(options)).then(settle);
    return result;
  }

  create(key: string, value: unknown, options: KvPutOptions = {}): AsyncResult<KvRevision, KvFailure> {
    return this.#write(this.#valued(key, value, options), (write) => this.#writer.create(write));
  }

  put(key: string, value: unknown, options: KvPutOptions = {}): AsyncResult<KvRevision, KvFailure> {
    return this.#write(this.#valued(key, value, options), (write) => this.#writer.put(write));
  }

  replace(key: string, value: unknown, options: KvReplaceOptions): AsyncResult<KvRevision, KvFailure> {
    const { revision } = options;
    const write = isRevision(revision) ? this.#valued(key, value, options) : err(invalidRevision());
    return this.#write(write, (sound) => this.#writer.replace(sound, revision));
  }

  delete(key: string, options: KvDeleteOptions = {}): AsyncResult<KvRevision, KvFailure> {
    const { revision } = options;
    if (revision !== undefined && !isRevision(revision)) return AsyncResult.err(invalidRevision());
    const write = this.#subject(key).map((subject): KvWrite => {
      const common = { key, subject, data: undefined, version: 1, ttlSeconds: undefined };
      return { ...common, options: this.#options(options) };
    });
    return this.#write(write, (sound) =>
      revision === undefined ? this.#writer.put(sound) : this.#writer.replace(sound, revision),
    );
  }

  history(key: string, options: KvOptions = {}): AsyncResult<readonly KvStored<unknown>[], KvFailure> {
    const subject = this.#subject(key);
    if (subject.isErr()) return AsyncResult.err(subject.error);
    return AsyncResult.try(
      async () => {
        const stored: KvStored<unknown>[] = [];
        for (let from = 1; ; ) {
          const request = { filter: subject.value, from, limit: 64 };
          const page = (await this.#reader.page(request, this.#options(options))).orThrow();
          stored.push(...page.records.map((record) => this.#values.decode(key, record)));
          const last = page.records.at(-1);
          if (page.complete || last === undefined) return stored;
          from = last.sequence + 1;
        }
      },
      (thrown) => kvFailure(thrown, key),
    );
  }

  keys(prefix = "", options: KvListOptions = {}): KvListing<string> {
    return new KvPages(
      () => this.#follow({ prefix }, { live: false, signal: options.signal }),
      (stored) => (stored.kind === "deleted" ? undefined : stored.key),
    );
  }

  entries(prefix = "", options: KvListOptions = {}): KvListing<KvEntry<unknown> | KvInvalid> {
    return new KvPages(
      () => this.#follow({ prefix }, { live: false, signal: options.signal }),
      (stored) => (stored.kind === "deleted" ? undefined : stored),
    );
  }

  watch({ prefix, key, signal }: KvWatchOptions = {}): KvWatch<unknown> {
    if (prefix !== undefined && key !== undefined)
      throw new TypeError("A watch takes a prefix or a key, not both.");
    return this.#follow(key === undefined ? { prefix: prefix ?? "" } : { key }, { live: true, signal });
  }

  #follow(keys: Keys, { live, signal }: { live: boolean; signal: AbortSignal | undefined }): KvWatching {
    const { link, binding } = this.#input;
    const tokens = tokensOf(keys);
    const filter = `${this.#prefix}${tokens}`;
    const follower = new StreamFollower({
      link,
      reader: this.#reader,
      filter,
      live: live ? `${binding.watch}.${tokens}` : undefined,
      contiguous: tokens === ">",
      ages: binding.ttlMs !== null,
      signal,
    });
    const { history } = binding;
    const initial = new KvInitial({ reader: this.#reader, filter, history, signal });
    return new KvWatching(follower, { initial, read: (record) => this.#read(keys, record) });
  }

  #read(keys: Keys, record: StoredRecord): KvStored<unknown> | undefined {
    // Subjects that no key leads to are of other tools; there is no name to give them by.
    const key = decodeKvKey(record.subject.slice(this.#prefix.length));
    if (key === undefined || ("prefix" in keys ? !key.startsWith(keys.prefix) : key !== keys.key))
      return undefined;
    return this.#values.decode(key, record);
  }

  #entry(
    key: string,
    found: Result<StoredRecord | undefined, KvFailure>,
    subject: string,
  ): Result<KvEntry<unknown> | undefined, KvFailure> {
    if (found.isErr()) return err(kvFailure(found.error, key));
    const record = found.value;
    // A revision may be one of another key.
    if (record === undefined || record.subject !== subject) return ok(undefined);
    const stored = this.#values.decode(key, record);
    if (stored.kind === "invalid") return err(stored.error);
    return ok(stored.kind === "value" ? stored : undefined);
  }

  #subject(key: string): Result<string, ValidationError> {
    const problem = kvKeyProblem(key);
    return problem === undefined ? ok(this.#prefix + encodeKvKey(key)) : err(invalidKey(problem));
  }

  #valued(key: string, value: unknown, options: KvPutOptions): Result<KvWrite, KvFailure> {
    const subject = this.#subject(key);
    if (subject.isErr()) return subject;
    const data = this.#values.encode(value);
    if (data.isErr()) return data;
    const { ttl } = options;
    if (ttl !== undefined && this.#input.binding.history > 1) return err(ttlWithHistory(key));
    return ok({
      key,
      subject: subject.value,
      data: data.value,
      version: this.#values.version,
      ttlSeconds: ttl === undefined ? undefined : Math.max(1, Math.ceil(parseDuration(ttl, "ttl") / 1_000)),
      options: this.#options(options),
    });
  }

  #write(
    write: Result<KvWrite, KvFailure>,
    send: (write: KvWrite) => Promise<number>,
  ): AsyncResult<KvRevision, KvFailure> {
    if (write.isErr()) return AsyncResult.err(write.error);
    const { key, options } = write.value;
    if (options.signal?.aborted === true)
      return AsyncResult.err(new CancelledError({ reason: "aborted", cause: options.signal.reason }));
    return AsyncResult.from(
      send(write.value).then(
        (revision): Result<KvRevision, KvFailure> => ok({ key, revision }),
        (thrown: unknown): Result<KvRevision, KvFailure> => err(kvFailure(thrown, key)),
      ),
    );
  }

  #options({ timeout, signal }: KvOptions): RequestOptions {
    return { timeoutMs: timeout ?? this.#input.timeoutMs, signal };
  }
}

function tokensOf(keys: Keys): string {
  if ("key" in keys) {
    const problem = kvKeyProblem(keys.key);
    if (problem !== undefined) throw invalidKey(problem);
    return encodeKvKey(keys.key);
  }
  try {
    return kvPrefixFilter(keys.prefix).tokens;
  } catch (cause) {
    throw invalidKey(cause instanceof TypeError ? cause.message : "is none", "prefix");
  }
}

function isRevision(revision: unknown): revision is number {
  return typeof revision === "number" && Number.isSafeInteger(revision) && revision >= 1;
}

function invalidRevision(): ValidationError {
  const message = "must be a revision that an entry or a write has given";
  return new ValidationError({
    errors: [{ path: "/revision", message }],
    message: `The revision ${message}`,
  });
}

function ttlWithHistory(key: string): KVError {
  return new KVError({
    reason: "refused",
    key,
    message:
      "A value of a bucket that keeps a history cannot have a ttl of its own: the older one would come back.",
    hint: "Use the bucket's ttl, or `history: 1`.",
  });
}
