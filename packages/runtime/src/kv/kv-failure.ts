import { KVError, TransportError, ValidationError } from "@trellis/protocol";
import { UnexpectedError } from "@trellis/result";
import type { RequestFailure } from "../jetstream/broker-request.ts";
import { PublishError } from "../jetstream/publisher.ts";

/** Every error that an operation on a bucket can end with; `type` tells them apart. */
export type KvFailure = KVError | ValidationError | RequestFailure | UnexpectedError;

/** The server's numbers for a stream that takes no more: by bytes, by messages, by its account or its disk. */
const fullCodes: ReadonlySet<number> = new Set([10077, 10047, 10023, 10028, 10002]);
const messageTooLarge = 10054;

/** The error of the caller for whatever a request ended with. */
export function kvFailure(thrown: unknown, key?: string): KvFailure {
  if (thrown instanceof PublishError) return refusal(thrown, key);
  if (thrown instanceof TransportError && thrown.code === "trellis.jetstream.no_stream")
    return bucketMissing(thrown);
  if (thrown instanceof TransportError && thrown.code === "trellis.jetstream.not_sent")
    return tooLarge("is larger than the broker takes", thrown);
  if (thrown instanceof Error && "kind" in thrown && thrown.kind === "call") return thrown as KvFailure;
  return UnexpectedError.from(thrown);
}

function bucketMissing(cause: unknown): KVError {
  return new KVError({
    reason: "bucket_missing",
    hint: "It was removed, or the broker has not come up yet. Nothing makes a new one by itself: `trellis doctor`.",
    cause,
  });
}

function refusal(cause: PublishError, key: string | undefined): KvFailure {
  const { errCode } = cause;
  const about = key === undefined ? {} : { key };
  if (fullCodes.has(errCode)) return new KVError({ ...about, reason: "bucket_full", cause });
  if (errCode === messageTooLarge) return tooLarge("is larger than the bucket allows", cause);
  return new KVError({ ...about, reason: "refused", details: { errCode }, cause });
}

function tooLarge(message: string, cause: unknown): ValidationError {
  return new ValidationError({ errors: [{ path: "", message }], message: `The value ${message}`, cause });
}

/** The error of text that cannot be a key or a prefix. */
export function invalidKey(problem: string, what = "key"): ValidationError {
  return new ValidationError({
    message: `The ${what} ${problem}`,
    errors: [{ path: "", message: problem }],
    context: { argument: what },
  });
}
