import type { Duration } from "@trellis/contract";
import type { AsyncResult } from "@trellis/result";
import type { KvChange, KvEntry, KvInvalid, KvRevision, KvStored } from "./kv-entry.ts";
import type { KvFailure } from "./kv-failure.ts";

export interface KvOptions {
  /** Milliseconds for everything, waiting for the socket included. Default: that of the connection. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

export interface KvGetOptions extends KvOptions {
  /** Reads this very revision, as long as it is kept. */
  readonly revision?: number;
}

export interface KvPutOptions extends KvOptions {
  /** The value goes away by itself after this time, in whole seconds. Not for buckets that keep a history. */
  readonly ttl?: Duration;
}

export interface KvReplaceOptions extends KvPutOptions {
  /** The revision that is replaced; any other one is a `revision_mismatch`. */
  readonly revision: number;
}

export interface KvDeleteOptions extends KvOptions {
  /** Deletes only if the key is at this revision. */
  readonly revision?: number;
}

export interface KvListOptions {
  readonly signal?: AbortSignal;
}

export interface KvWatchOptions {
  /** Only keys that begin with this text. */
  readonly prefix?: string;
  /** Only this key. */
  readonly key?: string;
  /** Ends the watch with a `CancelledError`. */
  readonly signal?: AbortSignal;
}

/** A listing that is read page by page: break off at any time. Iterating throws a `KvFailure`. */
export interface KvListing<T> extends AsyncIterable<T> {
  /** All of it at once. */
  collect(): AsyncResult<readonly T[], KvFailure>;
}

/**
 * A watch: iterate it, once. It first gives what is there, then `ready`, then changes, deletions included, each with
 * a revision above the one before of its key. It outlives restarts of the broker. Who reads too slowly may miss
 * revisions between, never the newest. Iterating throws a `KvFailure` where the watch cannot go on; it ends when
 * the connection is stopped.
 */
export interface KvWatch<V> extends AsyncIterable<KvChange<V>>, AsyncDisposable {
  stop(): void;
}

/** A typed key-value bucket. `In` is what is written, `Out` what is read. */
export interface Kv<In, Out> {
  /** The value of a key, or `undefined`. A value that cannot be read is an error, not absent. */
  get(key: string, options?: KvGetOptions): AsyncResult<KvEntry<Out> | undefined, KvFailure>;
  /** Writes a value if the key has none; else a `KVError` with reason `exists` and the revision in the way. */
  create(key: string, value: In, options?: KvPutOptions): AsyncResult<KvRevision, KvFailure>;
  /** Writes a value, whatever was there. */
  put(key: string, value: In, options?: KvPutOptions): AsyncResult<KvRevision, KvFailure>;
  /** Writes a value if the key is at `options.revision`; else a `KVError` with reason `revision_mismatch`. */
  replace(key: string, value: In, options: KvReplaceOptions): AsyncResult<KvRevision, KvFailure>;
  /** Deletes a key, readable or not. */
  delete(key: string, options?: KvDeleteOptions): AsyncResult<KvRevision, KvFailure>;
  /** The revisions that are kept of a key, oldest first. */
  history(key: string, options?: KvOptions): AsyncResult<readonly KvStored<Out>[], KvFailure>;
  /** The keys that have a value, in no order. */
  keys(prefix?: string, options?: KvListOptions): KvListing<string>;
  /** The values, in no order; those that cannot be read as such. */
  entries(prefix?: string, options?: KvListOptions): KvListing<KvEntry<Out> | KvInvalid>;
  watch(options?: KvWatchOptions): KvWatch<Out>;
}
