import { type Static, Type } from "typebox";
import { CLOSED, DigestField, KeyField, TextField, TimeField, TokenField } from "../statements/fields.ts";

const members = {
  version: Type.Literal(1),
  kind: Type.Enum(["service", "client"]),
  /** The public half of the durable key that makes the identity proof. */
  identityKey: KeyField,
  /** A label for people. */
  name: Type.Optional(TextField),
  participant: Type.Object(
    {
      id: Type.String({ minLength: 1, maxLength: 256 }),
      digest: DigestField,
      /** The artifact itself: in development, or when the control plane asks for it. */
      artifact: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    },
    CLOSED,
  ),
  sessionKey: KeyField,
  exchangeKey: KeyField,
  /** Single use. */
  requestId: TokenField,
  issuedAt: TimeField,
};

/** What a process asks for when it connects. Two proofs travel as headers. */
export const BootstrapRequestSchema = Type.Object(
  { ...members, connection: Type.Optional(TokenField) },
  CLOSED,
);

export type BootstrapRequest = Static<typeof BootstrapRequestSchema>;

/** What a connected process asks for before its authorization ends: the same, for the same connection. */
export const RefreshRequestSchema = Type.Object({ ...members, connection: TokenField }, CLOSED);

export type RefreshRequest = Static<typeof RefreshRequestSchema>;
