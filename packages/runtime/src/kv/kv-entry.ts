import type { KVError } from "@trellis/protocol";

/** A value, and which revision of its key it is. */
export interface KvEntry<V> {
  readonly kind: "value";
  readonly key: string;
  readonly value: V;
  /** Grows with every write to the bucket; what `replace` and a checked `delete` ask for. */
  readonly revision: number;
  readonly updatedAt: Date;
  /** When it goes away by itself; `undefined` where values stay. */
  readonly expiresAt: Date | undefined;
}

/** A key that was deleted. */
export interface KvDeleted {
  readonly kind: "deleted";
  readonly key: string;
  readonly revision: number;
  readonly updatedAt: Date;
}

/** A value that cannot be read: it does not fit the schema, or is in a representation that is not known. */
export interface KvInvalid {
  readonly kind: "invalid";
  readonly key: string;
  readonly revision: number;
  readonly updatedAt: Date;
  readonly error: KVError;
}

/** What is stored under a key at one revision. */
export type KvStored<V> = KvEntry<V> | KvDeleted | KvInvalid;

/** Comes once in a watch: everything that was there when it began has been given. */
export interface KvReady {
  readonly kind: "ready";
}

/** What a watch gives. */
export type KvChange<V> = KvStored<V> | KvReady;

/** Where a write went. */
export interface KvRevision {
  readonly key: string;
  readonly revision: number;
}
