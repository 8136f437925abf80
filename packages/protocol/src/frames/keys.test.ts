import { describe, expect, it } from "vitest";
import { toHex } from "../bytes/hex.ts";
import { portablePort as port } from "../port/portable.ts";
import { deriveRpcKeys } from "./keys.ts";
import { encodeReceipt, readReceipt } from "./receipt.ts";

describe("deriveRpcKeys", () => {
  it("gives both ends the same keys, another for each direction", () => {
    const caller = port.x25519.keyPair();
    const route = port.x25519.keyPair();
    const digest = port.random(32);
    const ours = deriveRpcKeys(port, { shared: caller.shared(route.publicKey), digest, epoch: 1 });
    const theirs = deriveRpcKeys(port, { shared: route.shared(caller.publicKey), digest, epoch: 1 });
    const tag = (key: typeof ours.request): string => toHex(port.mac(key, digest, digest));
    expect(tag(ours.request)).toBe(tag(theirs.request));
    expect(tag(ours.reply)).toBe(tag(theirs.reply));
    expect(tag(ours.request)).not.toBe(tag(ours.reply));
  });
});

describe("receipts", () => {
  it("name the provider's connection, or are none", () => {
    expect(readReceipt(JSON.parse(encodeReceipt({ connection: "con1" })))).toEqual({ connection: "con1" });
    for (const value of [
      null,
      1,
      "x",
      [],
      {},
      { connection: 1 },
      { connection: "a.b" },
      { connection: "" },
    ]) {
      expect(readReceipt(value)).toBeUndefined();
    }
  });
});
