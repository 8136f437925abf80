import type { AsyncResult } from "@trellis/result";
import type { StoreFailure } from "./store-failure.ts";

/** What is known of an object. */
export interface StoreInfo {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  readonly updatedAt: Date;
  /** `SHA-256=` and the base64url of the hash of its bytes. */
  readonly digest: string;
  readonly contentType: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An object to read. Its bytes are fetched when they are asked for, and proven by the digest at the end. */
export interface StoreEntry {
  readonly info: StoreInfo;
  /** The bytes as they come, no faster than they are read. A stream that breaks ends with a `StoreFailure`. */
  stream(): ReadableStream<Uint8Array>;
  /** All bytes at once. */
  bytes(): AsyncResult<Uint8Array, StoreFailure>;
}

/**
 * What an object is made from. Bytes are read while they are sent: do not change an array before the put has ended.
 * Streams and iterables may reuse one array for all their pieces.
 */
export type StoreSource =
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

export interface StoreOptions {
  /** Milliseconds to wait for an answer of the broker. Default: that of the connection. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

export interface StorePutOptions extends StoreOptions {
  readonly contentType?: string;
  /** Any pairs of text, 32 KiB in all. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface StoreListOptions extends StoreOptions {
  /** Only keys that begin with this text. */
  readonly prefix?: string;
  /** Where the page before ended; only together with its prefix. */
  readonly cursor?: string;
  /** Most objects of the page: 1 to 500. Default 100. */
  readonly limit?: number;
}

export interface StorePage {
  /** Ordered by key (by UTF-16 code units, as `sort()` does). */
  readonly items: readonly StoreInfo[];
  /** Where the next page begins; `undefined` at the end. */
  readonly cursor: string | undefined;
  /** Keys whose description cannot be read: damaged, or links of other tools. They can be put and deleted. */
  readonly unreadable: readonly string[];
}

/** An object store. */
export interface ObjectStore {
  /** Stores an object if there is none of this key; else a `StoreError` with reason `exists`. */
  create(key: string, source: StoreSource, options?: StorePutOptions): AsyncResult<StoreInfo, StoreFailure>;
  /**
   * Stores an object in place of the one of this key. It is there when all of it is: a put that fails leaves the old
   * object as it was, and nothing of the new one.
   */
  put(key: string, source: StoreSource, options?: StorePutOptions): AsyncResult<StoreInfo, StoreFailure>;
  get(key: string, options?: StoreOptions): AsyncResult<StoreEntry | undefined, StoreFailure>;
  head(key: string, options?: StoreOptions): AsyncResult<StoreInfo | undefined, StoreFailure>;
  /** Deletes an object; says whether there was one. */
  delete(key: string, options?: StoreOptions): AsyncResult<boolean, StoreFailure>;
  /** One page of the objects. Reads all descriptions: for stores of up to some ten thousand objects. */
  list(options?: StoreListOptions): AsyncResult<StorePage, StoreFailure>;
  /** Waits until there is an object of this key. `timeout` in milliseconds; without, it waits for its signal. */
  waitFor(key: string, options?: StoreOptions): AsyncResult<StoreInfo, StoreFailure>;
}

/** `service.store.<alias>`: the way to a store. */
export interface StoreHandle {
  /** The store, once it has answered. It is never made by this. */
  open(options?: StoreOptions): AsyncResult<ObjectStore, StoreFailure>;
}
