import { type Static, Type } from "typebox";
import type { Authorization } from "./authorization.ts";
import { CLOSED, KeyIdField, TextField, TimeField, TokenField } from "./fields.ts";

/** What a revocation can be about. */
export const REVOCATION_SUBJECTS = ["connection", "instance", "deployment", "principal", "identity"] as const;

/** That nothing issued before an instant counts any more for one subject. Sticky: no later record takes it back. */
export const RevocationSchema = Type.Object(
  {
    version: Type.Literal(1),
    issuer: KeyIdField,
    subject: Type.Object({ kind: Type.Enum(REVOCATION_SUBJECTS), id: TextField }, CLOSED),
    /** Authorizations that began at or before this instant are revoked. */
    at: TimeField,
    reason: TextField,
  },
  CLOSED,
);

export type Revocation = Static<typeof RevocationSchema>;

/** The revocation as a kind of statement. */
export const REVOCATION = { label: "trellis.revocation.v1", schema: RevocationSchema } as const;

/** That a connection is gone: its calls are aborted, calls to it are lost. */
export const ConnectionEndSchema = Type.Object(
  {
    version: Type.Literal(1),
    issuer: KeyIdField,
    connection: TokenField,
    deployment: TokenField,
    instance: TokenField,
    at: TimeField,
    reason: TextField,
  },
  CLOSED,
);

export type ConnectionEnd = Static<typeof ConnectionEndSchema>;

/** The connection end as a kind of statement. */
export const CONNECTION_END = { label: "trellis.connection-end.v1", schema: ConnectionEndSchema } as const;

/** Whether the revocation is about this authorization: same subject, and begun at or before the instant. */
export function revokes(revocation: Revocation, authorization: Authorization): boolean {
  const { subject, at } = revocation;
  return authorization.notBefore <= at && revocableIds(authorization)[subject.kind] === subject.id;
}

/** The ids by which an authorization can be revoked. Of a principal: its kind and id, since ids differ by kind. */
export function revocableIds(
  authorization: Authorization,
): Readonly<Record<(typeof REVOCATION_SUBJECTS)[number], string>> {
  const { connection, instance, deployment, principal, identity } = authorization;
  return { connection, instance, deployment, principal: `${principal.kind}:${principal.id}`, identity };
}
