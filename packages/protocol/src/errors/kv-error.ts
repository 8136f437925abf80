import type { JsonObject } from "@trellis/result";
import { CallError, type CallErrorOptions, type Open, withDetails } from "./call-error.ts";

/**
 * What a key-value bucket says no to. `exists`: a live value is there (`revision` names it); `revision_mismatch`: the
 * key has moved on (`revision`: where it is now, when that is known); `invalid_value`: what is stored does not fit the
 * schema; `unknown_version`: it is in a representation that this participant cannot read; `bucket_missing`: the bucket
 * is not there at the moment, and nobody makes a new one; `bucket_replaced`: it was emptied or made anew under a watch;
 * `bucket_full`: it takes no more.
 */
export type KVErrorReason = Open<
  | "exists"
  | "revision_mismatch"
  | "invalid_value"
  | "unknown_version"
  | "bucket_missing"
  | "bucket_replaced"
  | "bucket_full"
  | "refused"
>;

const MESSAGES: Readonly<Record<string, string>> = {
  exists: "The key has a value already",
  revision_mismatch: "The key is at another revision",
  invalid_value: "The stored value does not fit the bucket's schema",
  unknown_version: "The stored value is in a representation that this participant cannot read",
  bucket_missing: "The bucket is not there",
  bucket_replaced: "The bucket was emptied or made anew",
  bucket_full: "The bucket is full",
  refused: "The bucket refused the operation",
};

/** A key-value bucket could not do what was asked, for a reason of its own. */
export class KVError extends CallError {
  static readonly errorType = "KVError";
  readonly type = "KVError";
  readonly reason: KVErrorReason;
  /** The key in question; none where the bucket as a whole is meant. */
  readonly key: string | undefined;
  /** The revision that stands in the way, when it is known. */
  readonly revision: number | undefined;

  constructor(
    options: CallErrorOptions & {
      readonly reason: KVErrorReason;
      readonly key?: string;
      readonly revision?: number;
      readonly details?: JsonObject;
    },
  ) {
    const { reason, key, revision, details } = options;
    const text = MESSAGES[reason] ?? `The bucket refused: ${reason.replaceAll("_", " ")}`;
    super(
      options.message ?? (key === undefined ? text : `${text}: ${JSON.stringify(key)}`),
      withDetails(options, {
        reason,
        ...(key !== undefined && { key }),
        ...(revision !== undefined && { revision }),
        ...details,
      }),
    );
    this.reason = reason;
    this.key = key;
    this.revision = revision;
  }
}
