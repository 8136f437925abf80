import type { JsonObject } from "@trellis/result";
import { CallError, type CallErrorOptions, type Open, withDetails } from "./call-error.ts";

/**
 * What an object store says no to. `exists`: an object is there; `too_large`: more bytes than an object may have;
 * `store_full`: the store takes no more; `corrupt`: what was read is not what was written; `replaced`: the object was
 * replaced or deleted while it was read; `invalid_object`: its description cannot be read; `store_missing`: the store is
 * not there at the moment, and nobody makes a new one; `invalid_cursor`: the cursor is not one of this listing;
 * `source_failed`: the source of a put gave an error (the `cause`).
 */
export type StoreErrorReason = Open<
  | "exists"
  | "too_large"
  | "store_full"
  | "corrupt"
  | "replaced"
  | "invalid_object"
  | "store_missing"
  | "invalid_cursor"
  | "source_failed"
  | "refused"
>;

const MESSAGES: Readonly<Record<string, string>> = {
  exists: "An object of this key exists already",
  too_large: "The object is larger than the store allows",
  store_full: "The store is full",
  corrupt: "The object is damaged: its bytes are not those that were stored",
  replaced: "The object was replaced or deleted while it was read",
  invalid_object: "The object's description cannot be read",
  store_missing: "The store is not there",
  invalid_cursor: "The cursor does not belong to this listing",
  source_failed: "The source of the object failed",
  refused: "The store refused the operation",
};

/** An object store could not do what was asked, for a reason of its own. */
export class StoreError extends CallError {
  static readonly errorType = "StoreError";
  readonly type = "StoreError";
  readonly reason: StoreErrorReason;
  /** The object in question; none where the store as a whole is meant. */
  readonly key: string | undefined;

  constructor(
    options: CallErrorOptions & {
      readonly reason: StoreErrorReason;
      readonly key?: string;
      readonly details?: JsonObject;
    },
  ) {
    const { reason, key, details } = options;
    const text = MESSAGES[reason] ?? `The store refused: ${reason.replaceAll("_", " ")}`;
    super(
      options.message ?? (key === undefined ? text : `${text}: ${JSON.stringify(key)}`),
      withDetails(options, { reason, ...(key !== undefined && { key }), ...details }),
    );
    this.reason = reason;
    this.key = key;
  }
}
