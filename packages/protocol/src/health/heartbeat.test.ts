import { describe, expect, it } from "vitest";
import { toBase64Url } from "../bytes/base64url.ts";
import { portablePort as port } from "../port/portable.ts";
import { type Heartbeat, signHeartbeat, verifyHeartbeat } from "./heartbeat.ts";

const key = port.ed25519.keyPair(new Uint8Array(32).fill(1));
const heartbeat: Heartbeat = {
  version: 1,
  kind: "service",
  participant: { id: "acme.shop", digest: `${"p".repeat(42)}A` },
  deployment: "dep1",
  instance: "ins1",
  connection: "con1",
  sessionKey: toBase64Url(key.publicKey),
  name: "shop",
  at: 1_000,
  status: "degraded",
  uptimeMs: 5,
  intervalMs: 30_000,
  runtime: { trellis: "0.1.0", node: "20.20.2" },
  checks: [{ name: "nats", status: "ok", durationMs: 0.5 }],
  load: { inFlight: 1, zombies: 0 },
};

describe("a heartbeat", () => {
  it("is trusted from the session that signed it alone", () => {
    const signed = signHeartbeat(port, { heartbeat, key });
    expect(verifyHeartbeat(port, { signed, publicKey: key.publicKey }).orThrow()).toEqual(heartbeat);
    const other = port.ed25519.keyPair();
    const refused = verifyHeartbeat(port, { signed, publicKey: other.publicKey });
    expect(refused.isErr() && refused.error.reason).toBe("signature_invalid");
    const text = verifyHeartbeat(port, { signed: { ...signed, payload: "x" }, publicKey: key.publicKey });
    expect(text.isErr() && text.error.reason).toBe("malformed");
  });

  it("must have its form", () => {
    const signed = signHeartbeat(port, { heartbeat: { ...heartbeat, uptimeMs: -1 }, key });
    const refused = verifyHeartbeat(port, { signed, publicKey: key.publicKey });
    expect(refused.isErr() && refused.error.reason).toBe("schema_mismatch");
  });
});
