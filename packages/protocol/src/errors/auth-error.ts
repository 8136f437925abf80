import { CallError, type CallErrorOptions, type Open, withDetails } from "./call-error.ts";

/** Why somebody or something was not trusted. */
export const AUTH_REASONS = [
  // What is wrong with a signed statement.
  "malformed",
  "not_canonical",
  "schema_mismatch",
  "unknown_issuer",
  "issuer_not_yet_valid",
  "issuer_expired",
  "signature_invalid",
  "root_mismatch",
  "sequence_rollback",
  // What is wrong with an authorization.
  "not_yet_valid",
  "expired",
  "revoked",
  "session_mismatch",
  "exchange_mismatch",
  "participant_mismatch",
  "connection_mismatch",
  "deployment_mismatch",
  "digest_mismatch",
  // What is wrong with a call.
  "unknown_authorization",
  "stale_epoch",
  "mac_invalid",
  "replayed",
  "clock_skew",
  "not_granted",
  "capability_missing",
  "revocations_unknown",
] as const;

export type AuthReason = Open<(typeof AUTH_REASONS)[number]>;

const MESSAGES: Readonly<Record<string, string>> = {
  expired: "The authorization has expired",
  revoked: "The authorization was revoked",
  not_granted: "The caller is not allowed to do this",
  capability_missing: "The caller lacks a capability that this needs",
  unknown_authorization: "The provider does not know the caller's authorization",
  clock_skew: "The request was issued too long ago, or in the future",
  replayed: "The request was already received",
};

/** Somebody could not be authenticated, or may not do this. `reason` says which. */
export class AuthError extends CallError {
  static readonly errorType = "AuthError";
  readonly type = "AuthError";
  readonly reason: AuthReason;

  constructor(options: CallErrorOptions & { readonly reason: AuthReason }) {
    const { reason } = options;
    super(
      options.message ?? MESSAGES[reason] ?? `Not trusted: ${reason.replaceAll("_", " ")}`,
      withDetails(options, { reason }),
    );
    this.reason = reason;
  }
}
