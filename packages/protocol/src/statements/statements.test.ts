import { canonicalJson } from "@trellis/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toBase64Url } from "../bytes/base64url.ts";
import { portablePort as port } from "../port/portable.ts";
import {
  AUTHORIZATION,
  type Authorization,
  authorizationDigest,
  checkAuthorization,
} from "./authorization.ts";
import { type Grants, grantsDigest, isGranted } from "./grants.ts";
import { ISSUERS_LABEL, type IssuerSet, verifyIssuers } from "./issuers.ts";
import { keyId, rootFingerprint } from "./keys.ts";
import { REVOCATION, revokes } from "./notices.ts";
import { API_BINDING } from "./routes.ts";
import { type Signed, signStatement } from "./signed.ts";
import { verifyStatement } from "./verify-statement.ts";

const root = port.ed25519.keyPair(new Uint8Array(32).fill(1));
const issuer = port.ed25519.keyPair(new Uint8Array(32).fill(2));
const stranger = port.ed25519.keyPair(new Uint8Array(32).fill(3));
const b64 = (letter: string): string => `${letter.repeat(42)}A`;

const listed = {
  id: keyId(port, issuer.publicKey),
  publicKey: toBase64Url(issuer.publicKey),
  notBefore: 100,
  expiresAt: 900,
};
const list = { version: 1, root: toBase64Url(root.publicKey), sequence: 5, issuedAt: 100, issuers: [listed] };
const signList = (payload: object, key = root): Signed =>
  signStatement(port, { label: ISSUERS_LABEL, payload, key });
const issuers: IssuerSet = verifyIssuers(port, { signed: signList(list) }).orThrow();

const authorization: Authorization = {
  version: 1,
  issuer: listed.id,
  principal: { kind: "service", id: "acme.shop" },
  identity: "i".repeat(22),
  participant: { id: "acme.shop", digest: b64("p") },
  deployment: "dep1",
  instance: "ins1",
  connection: "con1",
  login: null,
  sessionKey: b64("s"),
  exchangeKey: b64("x"),
  inbox: "_INBOX.con1",
  grants: b64("g"),
  policy: b64("t"),
  notBefore: 200,
  expiresAt: 800,
};
const sign = (payload: object, label: string = AUTHORIZATION.label, key = issuer): Signed =>
  signStatement(port, { label, payload, key });
const signed = sign(authorization);
const reason = (given: Signed, now = 500): string =>
  verifyStatement(port, { ...AUTHORIZATION, signed: given, issuers, now }).match({
    ok: () => "verified",
    err: (error) => error.reason,
  });

describe("verifyStatement", () => {
  it("gives the payload of what a known issuer signed", () => {
    const verified = verifyStatement(port, { ...AUTHORIZATION, signed, issuers, now: 500 }).orThrow();
    expect(verified).toEqual(authorization);
    expect(signed.payload).toBe(canonicalJson(authorization));
    expect(authorizationDigest(port, signed.payload)).toHaveLength(43);
  });

  it("refuses issuers that are unknown or out of their time", () => {
    expect(
      reason(
        sign({ ...authorization, issuer: keyId(port, stranger.publicKey) }, AUTHORIZATION.label, stranger),
      ),
    ).toBe("unknown_issuer");
    expect(reason(sign({ ...authorization, issuer: 1 }))).toBe("unknown_issuer");
    expect(reason(sign({ ...authorization, issuer: "__proto__" }))).toBe("unknown_issuer");
    expect(reason(signed, 99)).toBe("issuer_not_yet_valid");
    expect(reason(signed, 900)).toBe("issuer_expired");
  });

  it("refuses another label, another key, another payload, another signature", () => {
    expect(reason(sign(authorization, API_BINDING.label))).toBe("signature_invalid");
    expect(reason(sign(authorization, AUTHORIZATION.label, stranger))).toBe("signature_invalid");
    expect(reason({ ...signed, payload: signed.payload.replace("acme.shop", "acme.shoq") })).toBe(
      "signature_invalid",
    );
    for (const signature of [
      "",
      "x",
      toBase64Url(new Uint8Array(64)),
      `${signed.signature}A`,
      signed.signature.slice(1),
    ]) {
      expect(reason({ ...signed, signature })).toBe("signature_invalid");
    }
  });

  it("refuses any payload text that is not canonical, even if it is signed", () => {
    const { payload } = signed;
    for (const text of [
      payload.replace("{", "{ "),
      `${payload} `,
      payload.replace('"connection"', '"\\u0063onnection"'),
      payload.replace("200", "2e2"),
      payload.replace("{", '{"connection":"con1",'),
      JSON.stringify(authorization),
    ]) {
      const key = toBase64Url(issuer.sign(new Uint8Array()));
      expect(reason({ payload: text, signature: key })).toBe("not_canonical");
    }
  });

  it("refuses what is no object of JSON, of any size", () => {
    for (const payload of [
      "",
      "null",
      "[]",
      "1",
      "{",
      '{"__proto__":{}}',
      "[".repeat(300),
      "x".repeat(300_000),
    ]) {
      expect(reason({ payload, signature: signed.signature })).toBe("malformed");
    }
  });

  it("refuses a payload that does not fit, even if it is signed", () => {
    const { inbox: _inbox, ...without } = authorization;
    for (const payload of [
      { ...authorization, admin: true },
      { ...authorization, version: 2 },
      { ...authorization, sessionKey: `${"s".repeat(42)}B` },
      { ...authorization, connection: "a.b" },
      { ...authorization, principal: { kind: "root", id: "x" } },
      { ...authorization, expiresAt: 1.5 },
      without,
    ]) {
      expect(reason(sign(payload))).toBe("schema_mismatch");
    }
  });

  it("trusts no text in which one character was changed", () => {
    fc.assert(
      fc.property(
        fc.nat(signed.payload.length - 1),
        fc.string({ minLength: 1, maxLength: 1 }),
        (at, other) => {
          const payload = signed.payload.slice(0, at) + other + signed.payload.slice(at + 1);
          if (payload !== signed.payload) expect(reason({ ...signed, payload })).not.toBe("verified");
        },
      ),
      { numRuns: 60 },
    );
  });

  it("keeps texts apart that look alike", () => {
    const digests = ["café", "cafe\u0301"].map((id) =>
      authorizationDigest(port, sign({ ...authorization, principal: { kind: "user", id } }).payload),
    );
    expect(digests[0]).not.toBe(digests[1]);
    expect(() => sign({ ...authorization, principal: { kind: "user", id: "\ud800" } })).toThrow();
  });
});

describe("verifyIssuers", () => {
  const issuersReason = (
    given: Signed,
    more: { pinnedRoot?: string; minimumSequence?: number } = {},
  ): string =>
    verifyIssuers(port, { signed: given, ...more }).match({
      ok: () => "verified",
      err: (error) => error.reason,
    });

  it("trusts the pinned root, and on first use any root that signs for itself", () => {
    expect(issuersReason(signList(list))).toBe("verified");
    expect(issuersReason(signList(list), { pinnedRoot: rootFingerprint(port, root.publicKey) })).toBe(
      "verified",
    );
    expect(issuersReason(signList(list), { pinnedRoot: rootFingerprint(port, stranger.publicKey) })).toBe(
      "root_mismatch",
    );
    expect(issuersReason(signList(list, stranger))).toBe("signature_invalid");
  });

  it("does not go back to an older list", () => {
    expect(issuersReason(signList(list), { minimumSequence: 5 })).toBe("verified");
    expect(issuersReason(signList(list), { minimumSequence: 6 })).toBe("sequence_rollback");
  });

  it("refuses ids that are not those of their keys, twice the same, and what does not fit", () => {
    const other = { ...listed, id: keyId(port, stranger.publicKey) };
    expect(issuersReason(signList({ ...list, issuers: [other] }))).toBe("malformed");
    expect(issuersReason(signList({ ...list, issuers: [listed, listed] }))).toBe("malformed");
    expect(issuersReason(signList({ ...list, root: "x" }))).toBe("schema_mismatch");
    expect(issuersReason({ payload: "{ }", signature: "" })).toBe("not_canonical");
  });
});

describe("checkAuthorization", () => {
  const check = (
    expected: Partial<Parameters<typeof checkAuthorization>[1]>,
    given = authorization,
  ): string =>
    checkAuthorization(given, { now: 500, leewayMs: 0, ...expected }).match({
      ok: () => "in force",
      err: (error) => error.reason,
    });

  it("compares what it is asked to compare", () => {
    expect(check({})).toBe("in force");
    const { participant, sessionKey, exchangeKey, connection, deployment } = authorization;
    expect(check({ participant, sessionKey, exchangeKey, connection, deployment })).toBe("in force");
    expect(check({ participant: { id: "acme.shop" } })).toBe("in force");
    expect(check({ participant: { id: "acme.other" } })).toBe("participant_mismatch");
    expect(check({ participant: { id: "acme.shop", digest: b64("q") } })).toBe("participant_mismatch");
    expect(check({ sessionKey: b64("z") })).toBe("session_mismatch");
    expect(check({ exchangeKey: b64("z") })).toBe("exchange_mismatch");
    expect(check({ connection: "con2" })).toBe("connection_mismatch");
    expect(check({ deployment: "dep2" })).toBe("deployment_mismatch");
    expect(check({}, { ...authorization, inbox: "_INBOX.con2" })).toBe("connection_mismatch");
  });

  it("holds from its beginning, with leeway, to its exact end", () => {
    expect(check({ now: 199 })).toBe("not_yet_valid");
    expect(check({ now: 199, leewayMs: 1 })).toBe("in force");
    expect(checkAuthorization(authorization, { now: 0 }).isOk()).toBe(true);
    expect(check({ now: 799 })).toBe("in force");
    expect(check({ now: 800, leewayMs: 5_000 })).toBe("expired");
  });
});

describe("grants and revocations", () => {
  const grants: Grants = {
    version: 1,
    calls: [
      {
        api: "acme.orders@v1",
        deployment: "dep1",
        rpc: ["Orders.Create"],
        feeds: [],
        operations: [],
        publishes: [],
        consumes: ["Order.Placed"],
      },
    ],
    capabilities: ["orders.write"],
  };

  it("grant exactly an action of a provider", () => {
    const question = {
      surface: "rpc",
      api: "acme.orders@v1",
      deployment: "dep1",
      action: "Orders.Create",
    } as const;
    expect(isGranted(grants, question)).toBe(true);
    expect(isGranted(grants, { ...question, surface: "feeds" })).toBe(false);
    expect(isGranted(grants, { ...question, api: "acme.orders@v2" })).toBe(false);
    expect(isGranted(grants, { ...question, deployment: "dep2" })).toBe(false);
    expect(isGranted(grants, { ...question, action: "Orders" })).toBe(false);
  });

  it("have one digest, whatever the order of members", () => {
    const { version, calls, capabilities } = grants;
    expect(grantsDigest(port, { capabilities, calls, version })).toBe(grantsDigest(port, grants));
    expect(grantsDigest(port, { ...grants, capabilities: [] })).not.toBe(grantsDigest(port, grants));
  });

  it("revoke what began at or before the instant, by each kind of subject", () => {
    const subjects = [
      ["connection", "con1"],
      ["instance", "ins1"],
      ["deployment", "dep1"],
      ["principal", "service:acme.shop"],
      ["identity", "i".repeat(22)],
    ] as const;
    for (const [kind, id] of subjects) {
      const revocation = {
        version: 1 as const,
        issuer: listed.id,
        subject: { kind, id },
        at: 200,
        reason: "",
      };
      const verified = verifyStatement(port, {
        ...REVOCATION,
        signed: sign(revocation, REVOCATION.label),
        issuers,
        now: 500,
      });
      expect(revokes(verified.orThrow(), authorization)).toBe(true);
      expect(revokes({ ...revocation, at: 199 }, authorization)).toBe(false);
      expect(revokes({ ...revocation, subject: { kind, id: "other" } }, authorization)).toBe(false);
    }
  });
});
