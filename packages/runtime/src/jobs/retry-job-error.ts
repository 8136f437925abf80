import { BaseError, type BaseErrorOptions } from "@trellis/result";

/** Thrown or returned by a handler whose job is to be tried again, after its queue's backoff. */
export class RetryJobError extends BaseError {
  readonly kind = "call";
  readonly type = "RetryJobError";

  constructor(message = "The job is to be tried again", options: BaseErrorOptions = {}) {
    super(message, options);
  }
}
