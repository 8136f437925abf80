import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { decodePublicNkey } from "../nats/nkeys.ts";

/** Claims of a NATS token. Only what all of them share; `nats` holds the part that differs. */
export interface JwtClaims {
  sub: string;
  aud?: string;
  name?: string;
  exp?: number;
  nats: object;
}

const header = base64url(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" }));

/** Signs claims the way nats-server reads them: Ed25519 over `header.body`, the id being a hash of the claims. */
export function signJwt(input: { claims: JwtClaims; issuer: string; key: KeyObject; now: number }): string {
  const { claims, issuer, key, now } = input;
  const complete = { ...claims, iss: issuer, iat: Math.floor(now / 1000), jti: "" };
  complete.jti = createHash("sha256").update(JSON.stringify(complete)).digest("base64url");
  const signed = `${header}.${base64url(JSON.stringify(complete))}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`;
}

/**
 * Reads a token that a server signed with its own key; `undefined` unless the signature holds and the
 * issuer is a server key. The claims are not otherwise checked.
 */
export function verifyServerJwt(text: string): { issuer: string; claims: unknown } | undefined {
  const parts = text.split(".");
  const [head, body, signature] = parts;
  if (parts.length !== 3 || head === undefined || body === undefined || signature === undefined)
    return undefined;
  const claims = parseObject(Buffer.from(body, "base64url").toString());
  const issuer = claims?.["iss"];
  if (typeof issuer !== "string") return undefined;
  const key = serverKey(issuer);
  if (key === undefined) return undefined;
  const valid = verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url"));
  return valid ? { issuer, claims } : undefined;
}

/** Checks a client's signature over the nonce that the server gave it. */
export function verifyNonce(input: { sessionKey: Uint8Array; nonce: string; signature: string }): boolean {
  const bytes = Buffer.from(input.signature, "base64");
  if (bytes.length !== 64) return false;
  return verify(null, Buffer.from(input.nonce), ed25519PublicKey(input.sessionKey), bytes);
}

/** An Ed25519 public key of node:crypto from its 32 raw bytes; the JWK form is far cheaper than DER. */
export function ed25519PublicKey(raw: Uint8Array): KeyObject {
  const x = Buffer.from(raw).toString("base64url");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}

/** Servers of one cluster are few, and each signs every request. */
const serverKeyLimit = 64;
const serverKeys = new Map<string, KeyObject>();

function serverKey(issuer: string): KeyObject | undefined {
  const known = serverKeys.get(issuer);
  if (known !== undefined) return known;
  const raw = decodePublicNkey("server", issuer);
  if (raw === undefined) return undefined;
  const key = ed25519PublicKey(raw);
  if (serverKeys.size >= serverKeyLimit) serverKeys.clear();
  serverKeys.set(issuer, key);
  return key;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}
