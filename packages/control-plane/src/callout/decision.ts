import { fromBase64Url, isNonce, isToken } from "@trellis/protocol";
import { decodePublicNkey } from "../nats/nkeys.ts";
import { verifyNonce } from "./jwt.ts";
import type { CalloutRequest } from "./request.ts";

/** What the callout must know about the authorization whose digest a client presents. */
export interface CalloutSession {
  digest: string;
  connection: string;
  /** Base64url of the raw session public key. */
  sessionKey: string;
  policyDigest: string;
  expiresAt: number;
  revokedAt: number | null;
}

/** Why a client was refused. Only these codes are logged; the client learns nothing but the refusal. */
export type CalloutRefusal =
  | "transport_not_supported"
  | "nonce_missing"
  | "nonce_malformed"
  | "session_key_malformed"
  | "nonce_signature_invalid"
  | "token_missing"
  | "authorization_unknown"
  | "session_key_mismatch"
  | "authorization_revoked"
  | "authorization_expired"
  | "internal";

/** What a client has shown before we look anything up: that it holds a session key, and a digest. */
export interface Presented {
  digest: string;
  sessionKey: Uint8Array;
}

/**
 * First stage: the client proves possession of the session key by its signature over the server's nonce,
 * which the server itself does not verify. Needs no storage.
 */
export function checkPossession(request: CalloutRequest): Presented | CalloutRefusal {
  const { transport, nkey, nonce, signature, token } = request;
  if (transport !== "nats" && transport !== "websocket") return "transport_not_supported";
  if (nkey === undefined || nonce === undefined || signature === undefined) return "nonce_missing";
  if (!isNonce(nonce)) return "nonce_malformed";
  const sessionKey = decodePublicNkey("user", nkey);
  if (sessionKey === undefined) return "session_key_malformed";
  if (!verifyNonce({ sessionKey, nonce, signature })) return "nonce_signature_invalid";
  if (token === undefined || token === "") return "token_missing";
  if (token.length !== 43 || !isToken(token)) return "authorization_unknown";
  return { digest: token, sessionKey };
}

/** Second stage: the digest names a live authorization of that same session key. */
export function checkSession(
  presented: Presented,
  session: CalloutSession | undefined,
  now: number,
): CalloutSession | CalloutRefusal {
  if (session === undefined) return "authorization_unknown";
  const key = fromBase64Url(session.sessionKey);
  if (key === undefined || !equalBytes(key, presented.sessionKey)) return "session_key_mismatch";
  if (session.revokedAt !== null) return "authorization_revoked";
  if (session.expiresAt <= now) return "authorization_expired";
  return session;
}

/** Public keys: no need for constant time. */
function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}
