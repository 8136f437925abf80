import { type Static, Type } from "typebox";
import { TextField, TimeField } from "../statements/fields.ts";

/** Whether trying again can help: `final` ends the connection, `passing` is tried again. */
const CODES = {
  "trellis.bootstrap.denied": "final",
  "trellis.bootstrap.clock_skew": "passing",
  "trellis.bootstrap.proof_invalid": "final",
  "trellis.bootstrap.request_replayed": "passing",
  "trellis.bootstrap.unknown_instance": "final",
  "trellis.bootstrap.instance_disabled": "final",
  "trellis.bootstrap.participant_mismatch": "final",
  "trellis.bootstrap.participant_unknown": "final",
  "trellis.bootstrap.artifact_required": "passing",
  "trellis.bootstrap.binding_ambiguous": "final",
  "trellis.bootstrap.resource_refused": "final",
  "trellis.bootstrap.connection_mismatch": "final",
  "trellis.bootstrap.revoked": "final",
  "trellis.bootstrap.rate_limited": "passing",
  "trellis.bootstrap.invalid_request": "final",
  "trellis.bootstrap.origin_refused": "final",
  "trellis.bootstrap.dev_token_required": "final",
  "trellis.bootstrap.unavailable": "passing",
} as const;

/** Every code of a refused bootstrap or refresh. */
export type DenialCode = keyof typeof CODES;

export const DENIAL_CODES: readonly DenialCode[] = Object.keys(CODES).filter(isDenialCode);

/** The body of a refusal. `serverTime` lets the caller correct its clock. */
export const DenialSchema = Type.Object({
  code: TextField,
  message: TextField,
  hint: Type.Optional(TextField),
  serverTime: TimeField,
  retryAfterMs: Type.Optional(Type.Integer({ minimum: 0 })),
});

export type Denial = Static<typeof DenialSchema>;

const FINAL_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 409, 410]);

/**
 * Whether a refused bootstrap or refresh ends the connection. Status and code decide together: a proxy's own 403
 * carries no code of ours, and a code that this version does not know may be one that passes.
 */
export function isFinalDenial(status: number, code: string): boolean {
  return FINAL_STATUSES.has(status) && isDenialCode(code) && CODES[code] === "final";
}

/** Whether the text is one of {@link DENIAL_CODES}. */
export function isDenialCode(code: string): code is DenialCode {
  return Object.hasOwn(CODES, code);
}
