import { compileSchema } from "@trellis/contract";
import { ok, type Result } from "@trellis/result";
import { type Static, Type } from "typebox";
import { fromBase64Url } from "../bytes/base64url.ts";
import type { AuthError } from "../errors/auth-error.ts";
import type { Port } from "../port/port.ts";
import { CLOSED, KeyField, KeyIdField, TimeField } from "./fields.ts";
import { keyId, rootFingerprint } from "./keys.ts";
import { isSignedBy, readPayload, refused, type Signed } from "./signed.ts";

/** The domain label of the list of issuers. */
export const ISSUERS_LABEL = "trellis.issuers.v1";

/** Who may sign statements, and when: signed by the root, whose fingerprint a client pins. */
export const IssuersSchema = Type.Object(
  {
    version: Type.Literal(1),
    /** The root's public key. */
    root: KeyField,
    /** Grows with each list: an older one never replaces a newer one. */
    sequence: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    issuedAt: TimeField,
    issuers: Type.Array(
      Type.Object(
        { id: KeyIdField, publicKey: KeyField, notBefore: TimeField, expiresAt: TimeField },
        CLOSED,
      ),
      { maxItems: 64 },
    ),
  },
  CLOSED,
);

export type Issuers = Static<typeof IssuersSchema>;

export interface Issuer {
  readonly id: string;
  readonly publicKey: Uint8Array;
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** The issuers of a list that was verified. */
export interface IssuerSet {
  readonly rootFingerprint: string;
  readonly sequence: number;
  readonly issuedAt: number;
  readonly issuers: ReadonlyMap<string, Issuer>;
}

export interface VerifyIssuersInput {
  readonly signed: Signed;
  /** The fingerprint of the root that is trusted; without it any root that signs its own list passes (first use). */
  readonly pinnedRoot?: string;
  /** The sequence of the list in hand: an older list is refused. */
  readonly minimumSequence?: number;
}

/** Verifies a list of issuers. Reasons: `malformed`, `not_canonical`, `schema_mismatch`, `root_mismatch`, `signature_invalid`, `sequence_rollback`. */
export function verifyIssuers(port: Port, input: VerifyIssuersInput): Result<IssuerSet, AuthError> {
  const payload = readPayload(input.signed);
  if (!payload.ok) return payload;
  if (compileSchema(IssuersSchema).issues(payload.value) !== undefined) return refused("schema_mismatch");
  const list = payload.value as Issuers;
  const root = fromBase64Url(list.root);
  if (root === undefined) return refused("malformed");
  const fingerprint = rootFingerprint(port, root);
  if (input.pinnedRoot !== undefined && input.pinnedRoot !== fingerprint) return refused("root_mismatch");
  if (!isSignedBy(port, { label: ISSUERS_LABEL, signed: input.signed, publicKey: root })) {
    return refused("signature_invalid");
  }
  if (list.sequence < (input.minimumSequence ?? 0)) return refused("sequence_rollback");
  const issuers = new Map<string, Issuer>();
  for (const { id, publicKey, notBefore, expiresAt } of list.issuers) {
    const key = fromBase64Url(publicKey);
    if (key === undefined || issuers.has(id) || keyId(port, key) !== id) return refused("malformed");
    issuers.set(id, { id, publicKey: key, notBefore, expiresAt });
  }
  const { sequence, issuedAt } = list;
  return ok({ rootFingerprint: fingerprint, sequence, issuedAt, issuers });
}
