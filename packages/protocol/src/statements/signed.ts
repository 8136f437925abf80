import { canonicalJson } from "@trellis/contract";
import { err, ok, type Result } from "@trellis/result";
import { type Static, Type } from "typebox";
import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { transcript } from "../bytes/transcript.ts";
import { utf8Bytes } from "../bytes/utf8.ts";
import { AuthError, type AuthReason } from "../errors/auth-error.ts";
import { decodeJson } from "../json/decode.ts";
import type { Port, SigningKey } from "../port/port.ts";
import { CLOSED } from "./fields.ts";

/** The largest payload that is looked at. */
const MAX_PAYLOAD = 256 * 1024;

/** A signed JSON text as it is kept and sent: the exact canonical text, and the signature over label and text. */
export const SignedSchema = Type.Object(
  { payload: Type.String({ maxLength: MAX_PAYLOAD }), signature: Type.String({ maxLength: 128 }) },
  CLOSED,
);

export type Signed = Readonly<Static<typeof SignedSchema>>;

/** Signs a payload behind a domain label. Throws when the payload is not JSON. */
export function signStatement(
  _port: Port,
  input: { readonly label: string; readonly payload: object; readonly key: SigningKey },
): Signed {
  const payload = canonicalJson(input.payload);
  return { payload, signature: toBase64Url(input.key.sign(transcript(input.label, utf8Bytes(payload)))) };
}

/** Whether the signature is that of the key over label and payload text. */
export function isSignedBy(
  port: Port,
  input: { readonly label: string; readonly signed: Signed; readonly publicKey: Uint8Array },
): boolean {
  const signature = fromBase64Url(input.signed.signature);
  if (signature === undefined || signature.length !== 64) return false;
  return port.ed25519.verify(
    input.publicKey,
    transcript(input.label, utf8Bytes(input.signed.payload)),
    signature,
  );
}

/** The members of a payload whose text is canonical. Says nothing yet about who signed it. */
export function readPayload(signed: Signed): Result<Readonly<Record<string, unknown>>, AuthError> {
  if (typeof signed.payload !== "string" || typeof signed.signature !== "string") return refused("malformed");
  if (signed.payload.length > MAX_PAYLOAD) return refused("malformed");
  const decoded = decodeJson(signed.payload);
  if (!decoded.ok || !isRecord(decoded.value)) return refused("malformed");
  // Duplicate members, white space, other spellings of a number: all of them differ from the canonical text.
  return isCanonical(decoded.value, signed.payload) ? ok(decoded.value) : refused("not_canonical");
}

function isCanonical(value: unknown, text: string): boolean {
  try {
    return canonicalJson(value) === text;
  } catch {
    return false;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The error arm of every check on this page. */
export function refused(reason: AuthReason): Result<never, AuthError> {
  return err(new AuthError({ reason }));
}
