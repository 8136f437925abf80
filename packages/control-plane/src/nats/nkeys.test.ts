import { createPublicKey, verify } from "node:crypto";
import { nkeys } from "@nats-io/nats-core";
import { describe, expect, test } from "vitest";
import { decodePublicNkey, decodeSeedNkey, encodePublicNkey, encodeSeedNkey } from "./nkeys.ts";
import { newPlatformSeeds, nkeyAuthenticator, publicKeysOf, publicNkeyOf } from "./platform-keys.ts";

const bytes = (fill: number) => new Uint8Array(32).map((_, index) => (index * 7 + fill) & 0xff);

describe("nkeys", () => {
  test.each(["account", "user", "curve"] as const)(
    "%s keys survive the round trip, in both forms",
    (kind) => {
      for (let fill = 0; fill < 256; fill += 15) {
        const key = bytes(fill);
        const text = encodePublicNkey(kind, key);
        expect(text).toMatch(
          { account: /^A[A-Z2-7]{55}$/, user: /^U[A-Z2-7]{55}$/, curve: /^X[A-Z2-7]{55}$/ }[kind],
        );
        expect(decodePublicNkey(kind, text)).toEqual(key);
        const seed = encodeSeedNkey(kind, key);
        expect(seed).toMatch(
          { account: /^SA[A-Z2-7]{56}$/, user: /^SU[A-Z2-7]{56}$/, curve: /^SX[A-Z2-7]{56}$/ }[kind],
        );
        expect(decodeSeedNkey(seed)).toEqual({ kind, seed: key });
      }
    },
  );

  test("agrees with the nkeys library", () => {
    const raw = bytes(9);
    const utf8 = new TextEncoder();
    const user = encodeSeedNkey("user", raw);
    expect(publicNkeyOf(user, "user")).toBe(nkeys.fromSeed(utf8.encode(user)).getPublicKey());
    const account = encodeSeedNkey("account", raw);
    expect(publicNkeyOf(account, "account")).toBe(nkeys.fromSeed(utf8.encode(account)).getPublicKey());
    const curve = encodeSeedNkey("curve", raw);
    expect(publicNkeyOf(curve, "curve")).toBe(nkeys.fromCurveSeed(utf8.encode(curve)).getPublicKey());
  });

  test("refuses a changed letter, another kind, other lengths", () => {
    const text = encodePublicNkey("user", bytes(3));
    const changed = text.slice(0, 20) + (text[20] === "A" ? "B" : "A") + text.slice(21);
    for (const wrong of [changed, text.slice(1), `${text}A`, text.toLowerCase(), ""]) {
      expect(decodePublicNkey("user", wrong)).toBeUndefined();
    }
    expect(decodePublicNkey("account", text)).toBeUndefined();
    expect(decodeSeedNkey(text)).toBeUndefined();
    expect(() => encodePublicNkey("user", new Uint8Array(31))).toThrow(RangeError);
  });
});

describe("platform keys", () => {
  test("the authenticator's signature belongs to its public key", () => {
    const seeds = newPlatformSeeds();
    const answer = nkeyAuthenticator(seeds.ctl)("nonce-1234567");
    if (answer === undefined || !("nkey" in answer)) throw new Error("no nkey");
    expect(answer.nkey).toBe(publicKeysOf(seeds).ctl);
    const raw = decodePublicNkey("user", answer.nkey) ?? new Uint8Array();
    const x = Buffer.from(raw).toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    expect(verify(null, Buffer.from("nonce-1234567"), key, Buffer.from(answer.sig ?? "", "base64url"))).toBe(
      true,
    );
  });

  test("a wrong seed is refused without being shown", () => {
    const seeds = newPlatformSeeds();
    const attempt = () => publicNkeyOf(seeds.issuer, "user");
    expect(attempt).toThrow("not the seed of a NATS user key");
    expect(attempt).not.toThrow(seeds.issuer);
  });
});
