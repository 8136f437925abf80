import { StoreError, TransportError, ValidationError } from "@trellis/protocol";
import { UnexpectedError } from "@trellis/result";
import type { RequestFailure } from "../jetstream/broker-request.ts";
import { PublishError } from "../jetstream/publisher.ts";

/** Every error that an operation on a store can end with; `type` tells them apart. */
export type StoreFailure = StoreError | ValidationError | RequestFailure | UnexpectedError;

/** The server's numbers for a stream that takes no more: by bytes, by messages, by its account or its disk. */
const fullCodes: ReadonlySet<number> = new Set([10077, 10047, 10023, 10028, 10002]);

/** The error of the caller for whatever a request ended with. */
export function storeFailure(thrown: unknown, key?: string): StoreFailure {
  const about = key === undefined ? {} : { key };
  if (thrown instanceof PublishError) {
    if (fullCodes.has(thrown.errCode))
      return new StoreError({ ...about, reason: "store_full", cause: thrown });
    return new StoreError({
      ...about,
      reason: "refused",
      details: { errCode: thrown.errCode },
      cause: thrown,
    });
  }
  if (thrown instanceof TransportError && thrown.code === "trellis.jetstream.no_stream") {
    return new StoreError({
      reason: "store_missing",
      hint: "It was removed, or the broker has not come up yet. Nothing makes a new one by itself: `trellis doctor`.",
      cause: thrown,
    });
  }
  if (thrown instanceof Error && "kind" in thrown && thrown.kind === "call") return thrown as StoreFailure;
  return UnexpectedError.from(thrown);
}

/** The error of an argument. */
export function invalidArgument(path: string, message: string): ValidationError {
  return new ValidationError({ errors: [{ path, message }] });
}
