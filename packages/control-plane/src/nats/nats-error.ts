export type NatsErrorCode =
  | "trellis.nats.not_found"
  | "trellis.nats.unsupported_version"
  | "trellis.nats.config_refused"
  | "trellis.nats.start_failed"
  | "trellis.nats.stopped";

/** One source that was asked for a nats-server, and what came of it. */
export interface NatsAttempt {
  readonly source: string;
  readonly outcome: string;
}

interface NatsErrorOptions {
  readonly code: NatsErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly attempts?: readonly NatsAttempt[];
  readonly cause?: unknown;
}

/** The nats-server child could not be found, started or kept. `hint` says what to do about it. */
export class NatsError extends Error {
  override readonly name = "NatsError";
  readonly code: NatsErrorCode;
  readonly hint: string;
  /** For `trellis.nats.not_found`: every source in the order in which it was tried. */
  readonly attempts: readonly NatsAttempt[];

  constructor(options: NatsErrorOptions) {
    super(options.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.hint = options.hint;
    this.attempts = options.attempts ?? [];
  }
}
