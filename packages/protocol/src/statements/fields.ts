import { Type } from "typebox";

// The fields that statements and bootstrap bodies are made of. Text that means bytes has one spelling only.

/** base64url of 32 bytes; the last character's two unused bits are zero. */
const B64_32 = "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$";

/** An Ed25519 or X25519 public key. */
export const KeyField = Type.String({ pattern: B64_32 });
/** A SHA-256. */
export const DigestField = Type.String({ pattern: B64_32 });
/** A key id: see `keyId`. */
export const KeyIdField = Type.String({ pattern: "^[A-Za-z0-9_-]{22}$" });
/** An id that is one subject token as it stands. */
export const TokenField = Type.String({ pattern: "^[A-Za-z0-9_-]{1,256}$" });
/** Short text of a person or program. */
export const TextField = Type.String({ maxLength: 1024 });
/** Milliseconds since the epoch. */
export const TimeField = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const EpochField = Type.Integer({ minimum: 0, maximum: 0xffff_ffff });
export const ApiField = Type.String({
  pattern: "^[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*)+@v[1-9][0-9]*$",
  maxLength: 256,
});
export const ActionField = Type.String({
  pattern: "^[A-Za-z][A-Za-z0-9]*(\\.[A-Za-z][A-Za-z0-9]*)*$",
  maxLength: 256,
});
/** A participant's id and the digest of its artifact. */
export const ParticipantField = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 256 }), digest: DigestField },
  { additionalProperties: false },
);

/** A statement is closed: a member that this version does not know is a reason to refuse. */
export const CLOSED = { additionalProperties: false } as const;
