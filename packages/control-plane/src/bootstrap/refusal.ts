import type { Denial, DenialCode } from "@trellis/protocol";

/** A refused request: the status and what the body says. No refusal tells more than its code. */
export interface Refusal {
  status: 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 503;
  denial: Omit<Denial, "serverTime">;
}

const kinds = {
  "trellis.bootstrap.invalid_request": [400, "The request is not a valid bootstrap request."],
  "trellis.bootstrap.clock_skew": [401, "The request's time is outside of the window."],
  "trellis.bootstrap.proof_invalid": [401, "A proof of the request does not hold."],
  "trellis.bootstrap.dev_token_required": [401, "The dev token is needed for this."],
  "trellis.bootstrap.denied": [403, "The request is not allowed."],
  "trellis.bootstrap.origin_refused": [403, "The request did not come directly from this machine."],
  "trellis.bootstrap.instance_disabled": [403, "The instance or its deployment is disabled."],
  "trellis.bootstrap.revoked": [403, "The authority was revoked."],
  "trellis.bootstrap.unknown_instance": [404, "No instance with this identity key was provisioned."],
  "trellis.bootstrap.participant_unknown": [404, "The participant's contract is not installed."],
  "trellis.bootstrap.artifact_required": [409, "The participant's contract has to be sent."],
  "trellis.bootstrap.connection_mismatch": [409, "The connection belongs to other keys."],
  "trellis.bootstrap.participant_mismatch": [409, "The participant is not the one that is installed here."],
  "trellis.bootstrap.binding_ambiguous": [
    409,
    "Several deployments provide an API that is used; `trellis svc bind` chooses one.",
  ],
  "trellis.bootstrap.resource_refused": [409, "A resource of the contract cannot be had."],
  "trellis.bootstrap.request_replayed": [409, "The request id was used before."],
  "trellis.bootstrap.rate_limited": [429, "Too many failed requests."],
  "trellis.bootstrap.unavailable": [503, "The control plane cannot answer now."],
} as const satisfies Partial<Record<DenialCode, readonly [Refusal["status"], string]>>;

export type RefusalCode = keyof typeof kinds;

/** Makes a refusal; `hint` says what to do about it and may name only what the caller knows already. */
export function refusal(
  code: RefusalCode,
  more: { message?: string; hint?: string; retryAfterMs?: number } = {},
): Refusal {
  const [status, message] = kinds[code];
  return { status, denial: { code, message, ...more } };
}

/** Failures that count against an address. */
export function isCredentialFailure(code: string): boolean {
  return (
    code === "trellis.bootstrap.proof_invalid" ||
    code === "trellis.bootstrap.dev_token_required" ||
    code === "trellis.bootstrap.unknown_instance"
  );
}
