import type { JsonObject } from "@trellis/result";
import { CallError, type CallErrorOptions, type Open, withDetails } from "./call-error.ts";

/** Why nobody could serve a call. */
export type UnavailableReason = Open<
  | "no_responders"
  | "provider_lost"
  | "no_handler"
  | "not_bound"
  | "closed"
  | "invalidated"
  | "disconnected"
  | "stopping"
>;

const MESSAGES: Readonly<Record<string, string>> = {
  no_responders: "No provider is there",
  provider_lost: "The provider was lost while it worked on the call",
  no_handler: "The provider has no handler for this",
  not_bound: "Nothing is bound to this name yet",
  closed: "The connection is closed",
  invalidated: "The authorization of this connection is no longer valid",
  disconnected: "The connection is down",
  stopping: "The provider is stopping",
};

/** Nobody is there to serve this now. */
export class UnavailableError extends CallError {
  static readonly errorType = "UnavailableError";
  readonly type = "UnavailableError";
  readonly reason: UnavailableReason;

  constructor(options: CallErrorOptions & { readonly reason: UnavailableReason }) {
    const { reason } = options;
    super(
      options.message ?? MESSAGES[reason] ?? `Unavailable: ${reason.replaceAll("_", " ")}`,
      withDetails(options, { reason }),
    );
    this.reason = reason;
  }
}

/** What was asked for does not exist. */
export class NotFoundError extends CallError {
  static readonly errorType = "NotFoundError";
  readonly type = "NotFoundError";

  constructor(options: CallErrorOptions & { readonly details?: JsonObject } = {}) {
    super(options.message ?? "Not found", options);
  }
}

/** What is there does not allow this: another value, another revision, another owner. */
export class ConflictError extends CallError {
  static readonly errorType = "ConflictError";
  readonly type = "ConflictError";

  constructor(options: CallErrorOptions & { readonly details?: JsonObject } = {}) {
    super(options.message ?? "This conflicts with what is there", options);
  }
}
