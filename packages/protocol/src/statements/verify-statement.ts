import { compileSchema } from "@trellis/contract";
import { ok, type Result } from "@trellis/result";
import type { Static, TObject } from "typebox";
import type { AuthError } from "../errors/auth-error.ts";
import type { Port } from "../port/port.ts";
import type { IssuerSet } from "./issuers.ts";
import { isSignedBy, readPayload, refused, type Signed } from "./signed.ts";

/** One kind of statement: its domain label and the schema of its payload. */
export interface StatementKind<S extends TObject> {
  readonly label: string;
  readonly schema: S;
}

export interface VerifyStatementInput<S extends TObject> extends StatementKind<S> {
  readonly signed: Signed;
  readonly issuers: IssuerSet;
  /** The instant at which the issuer must be valid, in milliseconds: now, or when the statement was used. */
  readonly now: number;
}

/**
 * The payload of a statement that a known issuer signed. Reasons of refusal, in this order: `malformed`,
 * `not_canonical`, `unknown_issuer`, `issuer_not_yet_valid`, `issuer_expired`, `signature_invalid` (tampered with,
 * or of another kind: the label is part of what is signed), `schema_mismatch`. The statement's own validity is
 * another question: see `checkAuthorization`.
 */
export function verifyStatement<S extends TObject>(
  port: Port,
  input: VerifyStatementInput<S>,
): Result<Static<S>, AuthError> {
  const { label, signed, issuers, now } = input;
  const payload = readPayload(signed);
  if (!payload.ok) return payload;
  const id = payload.value["issuer"];
  const issuer = typeof id === "string" ? issuers.issuers.get(id) : undefined;
  if (issuer === undefined) return refused("unknown_issuer");
  if (now < issuer.notBefore) return refused("issuer_not_yet_valid");
  if (now >= issuer.expiresAt) return refused("issuer_expired");
  if (!isSignedBy(port, { label, signed, publicKey: issuer.publicKey })) return refused("signature_invalid");
  if (compileSchema(input.schema).issues(payload.value) !== undefined) return refused("schema_mismatch");
  return ok(payload.value as Static<S>);
}
