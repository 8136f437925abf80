import { createHash, generateKeyPairSync, sign } from "node:crypto";
import nacl from "tweetnacl";
import { describe, expect, it } from "vitest";
import { encodePublicNkey } from "../nats/nkeys.ts";
import { type CalloutSession, checkPossession, checkSession } from "./decision.ts";
import { signJwt, verifyServerJwt } from "./jwt.ts";
import { type CalloutRequest, readCalloutRequest } from "./request.ts";
import { SealedBox } from "./sealed-box.ts";

function keyPair() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { raw: publicKey.export({ format: "der", type: "spki" }).subarray(-32), privateKey };
}

const session = keyPair();
const nonce = "AbCdEfGhIjKlMnO";
const digest = createHash("sha256").update("x").digest("base64url");

function question(changes: Partial<CalloutRequest> = {}): CalloutRequest {
  return {
    serverId: "N",
    userNkey: "U",
    transport: "nats",
    nkey: encodePublicNkey("user", session.raw),
    nonce,
    signature: sign(null, Buffer.from(changes.nonce ?? nonce), session.privateKey).toString("base64"),
    token: digest,
    ...changes,
  };
}

function authorization(changes: Partial<CalloutSession> = {}): CalloutSession {
  const sessionKey = session.raw.toString("base64url");
  return {
    digest,
    connection: "C",
    sessionKey,
    policyDigest: "p",
    expiresAt: 1000,
    revokedAt: null,
    ...changes,
  };
}

describe("possession", () => {
  it("is shown by the session key's signature over the nonce", () => {
    expect(checkPossession(question())).toEqual({ digest, sessionKey: new Uint8Array(session.raw) });
    expect(checkPossession(question({ transport: "websocket" }))).toHaveProperty("digest");
  });

  it.each<[string, Partial<CalloutRequest>]>([
    ["transport_not_supported", { transport: "mqtt" }],
    ["transport_not_supported", { transport: undefined }],
    ["nonce_missing", { nkey: undefined }],
    ["nonce_missing", { nonce: undefined }],
    ["nonce_missing", { signature: undefined }],
    ["nonce_malformed", { nonce: "trellis.authorization.v1\0" }],
    ["session_key_malformed", { nkey: "UABC" }],
    ["nonce_signature_invalid", { signature: "" }],
    ["nonce_signature_invalid", { signature: "AAAA" }],
    ["nonce_signature_invalid", { nkey: encodePublicNkey("user", keyPair().raw) }],
    ["nonce_signature_invalid", { nkey: encodePublicNkey("user", new Uint8Array(32)) }],
    ["token_missing", { token: undefined }],
    ["token_missing", { token: "" }],
    ["authorization_unknown", { token: "x" }],
    ["authorization_unknown", { token: `${digest.slice(0, 42)}.` }],
  ])("is refused with %s for %o", (code, changes) => {
    expect(checkPossession(question(changes))).toBe(code);
  });
});

describe("the session", () => {
  const presented = { digest, sessionKey: new Uint8Array(session.raw) };

  it("has to be live and of the same session key", () => {
    expect(checkSession(presented, authorization(), 999)).toEqual(authorization());
    expect(checkSession(presented, undefined, 0)).toBe("authorization_unknown");
    expect(checkSession(presented, authorization({ expiresAt: 999 }), 999)).toBe("authorization_expired");
    expect(checkSession(presented, authorization({ revokedAt: 1 }), 0)).toBe("authorization_revoked");
    const other = keyPair().raw.toString("base64url");
    expect(checkSession(presented, authorization({ sessionKey: other }), 0)).toBe("session_key_mismatch");
    expect(checkSession(presented, authorization({ sessionKey: "?" }), 0)).toBe("session_key_mismatch");
  });
});

describe("the server's question", () => {
  const server = keyPair();
  const id = encodePublicNkey("server", server.raw);
  const nats = {
    server_id: { id },
    user_nkey: "U",
    client_info: { kind: "Client", type: "nats" },
    connect_opts: {},
  };
  const claims = { sub: "A", aud: "nats-authorization-request", exp: 100, nats };
  const make = (changes: object = {}, issuer = id) =>
    signJwt({ claims: { ...claims, ...changes }, issuer, key: server.privateKey, now: 0 });

  it("is read when that very server signed it", () => {
    expect(readCalloutRequest(make(), 0)).toMatchObject({ serverId: id, userNkey: "U", transport: "nats" });
  });

  it("is not when it is forged, of another server, late, of another kind, or garbage", () => {
    const other = encodePublicNkey("server", keyPair().raw);
    const [head = "", body = "", signature = ""] = make().split(".");
    const forged = Buffer.from(JSON.stringify({ ...claims, iss: id, sub: "B" })).toString("base64url");
    for (const token of [
      make({}, other),
      make({ nats: { ...nats, server_id: { id: other } } }),
      make({}, encodePublicNkey("user", server.raw)),
      make({ aud: "nats-authorization-response" }),
      make({ nats: {} }),
      `${head}.${forged}.${signature}`,
      `${head}.${body}`,
      `${head}.${body}.`,
      `${head}.!.${signature}`,
      "",
      "..",
    ]) {
      expect(readCalloutRequest(token, 0)).toBeUndefined();
    }
    expect(readCalloutRequest(make(), 200_000)).toBeUndefined();
    expect(verifyServerJwt(make())?.issuer).toBe(id);
  });

  it("names no transport for what is not a client", () => {
    const token = make({ nats: { ...nats, client_info: { kind: "Leafnode", type: "nats" } } });
    expect(readCalloutRequest(token, 0)?.transport).toBeUndefined();
  });
});

describe("sealed box", () => {
  const server = nacl.box.keyPair();
  const serverKey = encodePublicNkey("curve", server.publicKey);
  const own = nacl.box.keyPair();

  it("opens what was sealed for it and nothing else", () => {
    const box = new SealedBox(own.secretKey);
    const peer = new SealedBox(server.secretKey);
    const sealed = peer.seal(Buffer.from("hello"), encodePublicNkey("curve", own.publicKey));
    expect(Buffer.from(box.open(sealed ?? new Uint8Array(), serverKey) ?? []).toString()).toBe("hello");
    const changed = Buffer.from(sealed ?? []);
    changed[40] = (changed[40] ?? 0) ^ 1;
    for (const bytes of [changed, new Uint8Array(), Buffer.from("xkv1"), Buffer.alloc(200)]) {
      expect(box.open(bytes, serverKey)).toBeUndefined();
    }
    expect(box.open(sealed ?? new Uint8Array(), "X")).toBeUndefined();
  });
});
