import { describe, expect, it } from "vitest";
import { toBase64Url } from "../bytes/base64url.ts";
import { utf8Bytes } from "../bytes/utf8.ts";
import { portablePort as port } from "../port/portable.ts";
import { httpProof, verifyHttpProof } from "./http-proof.ts";

const key = port.ed25519.keyPair(new Uint8Array(32).fill(1));
const claims = {
  purpose: "bootstrap.service",
  method: "POST",
  path: "/bootstrap/service",
  origin: "https://trellis.example",
  requestId: "req1",
  issuedAt: 1_000,
  body: utf8Bytes('{"version":1}'),
  sessionKey: toBase64Url(key.publicKey),
} as const;
const proof = httpProof(port, { ...claims, key });
const { publicKey } = key;

describe("an HTTP proof", () => {
  it("counts for what it was made for, however the method is spelled", () => {
    expect(verifyHttpProof(port, { ...claims, publicKey, proof })).toBe(true);
    expect(verifyHttpProof(port, { ...claims, method: "post", publicKey, proof })).toBe(true);
  });

  it("counts for nothing else", () => {
    for (const change of [
      { purpose: "context.refresh" },
      { method: "PUT" },
      { path: "/bootstrap/service/" },
      { origin: "http://trellis.example" },
      { requestId: "req2" },
      { issuedAt: 1_001 },
      { body: utf8Bytes('{"version": 1}') },
      { sessionKey: toBase64Url(new Uint8Array(32)) },
      { path: "", origin: "/bootstrap/servicehttps://trellis.example" },
    ] as const) {
      expect(verifyHttpProof(port, { ...claims, ...change, publicKey, proof })).toBe(false);
    }
    const other = port.ed25519.keyPair();
    expect(verifyHttpProof(port, { ...claims, publicKey: other.publicKey, proof })).toBe(false);
  });

  it("of a wrong form is just wrong", () => {
    for (const text of ["", "x", "!", proof.slice(1), `${proof}AA`, toBase64Url(new Uint8Array(64))]) {
      expect(verifyHttpProof(port, { ...claims, publicKey, proof: text })).toBe(false);
    }
    expect(verifyHttpProof(port, { ...claims, publicKey: new Uint8Array(3), proof })).toBe(false);
  });
});
