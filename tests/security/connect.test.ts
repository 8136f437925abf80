import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { isNonce, TransportError, toBase64Url, transcript } from "@trellis/protocol";
import { connectClientWith, nodePlatform, nodePort as port, userNkey } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacker, dialRaw, type Presented } from "./attacker.ts";
import { mayPublish } from "./broker-probe.ts";
import { makeKeys, tamperedSource } from "./http.ts";
import { shop, startScene, startStock, startVault, warehouse } from "./scene.ts";

let trellis: TestTrellis;
let honest: Attacker;
let other: Attacker;

beforeAll(async () => {
  trellis = await startScene();
  await startStock(trellis);
  await startVault(trellis);
  honest = await Attacker.join(trellis, shop);
  other = await Attacker.join(trellis, warehouse);
});
afterAll(async () => {
  await Promise.all([honest?.close(), other?.close()]);
  await trellis?.stop();
});

describe("a connect to the broker", () => {
  it("needs the digest, the session key, and its signature over this very nonce", async () => {
    const { keys, answer, digestText } = honest;
    const stranger = port.ed25519.keyPair();
    const theirNkey = userNkey(other.keys.session.publicKey);
    const wrong: Record<string, Presented> = {
      "no token": { token: undefined },
      "an empty token": { token: "" },
      "an unknown digest": { token: toBase64Url(port.random(32)) },
      "a digest cut short": { token: digestText.slice(0, -1) },
      "a digest with more behind it": { token: `${digestText} ` },
      "another's digest": { token: other.digestText },
      "the authorization in place of its digest": { token: answer.authorization.payload },
      "another's nkey": { nkey: theirNkey },
      "another's nkey and digest": { nkey: theirNkey, token: other.digestText },
      "an nkey that was made up": { nkey: `U${"A".repeat(55)}` },
      "no signature": { sign: () => new Uint8Array(0) },
      "a signature of zeros": { sign: () => new Uint8Array(64) },
      "a stranger's signature": { sign: (nonce) => stranger.sign(nonce) },
      "the identity key's signature": { sign: (nonce) => keys.identity.sign(nonce) },
      "a signature over another nonce": { sign: () => keys.session.sign(Buffer.from("XdUzrTy4JfOpYfY")) },
      "a signature over more than the nonce": {
        sign: (nonce) => keys.session.sign(transcript("trellis.connect.v1", nonce)),
      },
    };
    const outcomes = await Promise.all(
      Object.entries(wrong).map(async ([what, presented]) => {
        const nats = await dialRaw(keys, answer, presented).catch(() => undefined);
        await nats?.close();
        return nats === undefined ? [] : [what];
      }),
    );
    expect(outcomes.flat()).toEqual([]);
    // None of that has cost the honest one its place, and it may dial again.
    expect(await mayPublish(honest.nats, "ctl.get.notices")).toBe(true);
    const again = await dialRaw(keys, answer);
    expect(await mayPublish(again, "ctl.get.notices")).toBe(true);
    // A second socket of one connection takes the place of the first.
    await honest.nats.closed();
    await again.close();
  });

  it("is not bought with a password, a static user's key or no credentials at all", async () => {
    const { plane } = trellis.controlPlane;
    for (const user of Object.values(plane.keys.brokerKeys)) {
      await expect(dialRaw(other.keys, other.answer, { nkey: user, token: undefined })).rejects.toThrow();
    }
    await expect(dialRaw(makeKeys(), other.answer)).rejects.toThrow();
  });
});

interface FakeBroker {
  readonly url: string;
  /** CONNECT lines that clients have sent. */
  readonly connects: string[];
  stop(): void;
}

/** Speaks as far as the challenge, with a nonce of its choice, then turns the client away. */
function fakeBroker(nonce: string): Promise<FakeBroker> {
  const connects: string[] = [];
  const server: Server = createServer((socket) => {
    const info = {
      server_id: "N".repeat(56),
      server_name: "fake",
      version: "2.15.1",
      go: "go",
      host: "127.0.0.1",
      port: 4222,
      headers: true,
      max_payload: 1_048_576,
      proto: 1,
      auth_required: true,
      nonce,
    };
    socket.on("error", () => {});
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    socket.on("data", (data) => {
      connects.push(
        ...data
          .toString()
          .split("\r\n")
          .filter((line) => line.startsWith("CONNECT")),
      );
      socket.end("-ERR 'Authorization Violation'\r\n");
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port: at } = server.address() as AddressInfo;
      resolve({ url: `nats://127.0.0.1:${at}`, connects, stop: () => void server.close() });
    });
  });
}

/** Connects an honest client to a broker that is not: what its keys have signed, and what it has shown. */
async function lured(nonce: string): Promise<{ signed: readonly Uint8Array[]; connects: readonly string[] }> {
  const broker = await fakeBroker(nonce);
  const signed: Uint8Array[] = [];
  const recording: typeof port = {
    ...port,
    ed25519: {
      verify: port.ed25519.verify,
      verifyLater: port.ed25519.verifyLater,
      keyPair: (seed) => {
        const pair = port.ed25519.keyPair(seed);
        return {
          seed: pair.seed,
          publicKey: pair.publicKey,
          sign: (data) => {
            signed.push(Uint8Array.from(data));
            return pair.sign(data);
          },
        };
      },
    },
  };
  const source = tamperedSource(trellis, {
    participant: shop,
    change: (answer) => ({ ...answer, transports: { tcp: [broker.url], websocket: [] } }),
  });
  const failed = await connectClientWith(
    { participant: shop, root: trellis.root, trellisUrl: trellis.url, timeout: 700, runtime: { log: false } },
    { source, platform: { ...nodePlatform, port: recording } },
  );
  broker.stop();
  expect(failed.isErr() && failed.error).toBeInstanceOf(TransportError);
  return { signed, connects: broker.connects };
}

function isThis(data: Uint8Array, nonce: string): boolean {
  return [Buffer.from(nonce), Buffer.from(nonce, "latin1")].some((bytes) => bytes.equals(data));
}

/** What the keys of a connection sign of their own accord stands behind a label of ours. */
function isLabelled(data: Uint8Array): boolean {
  return Buffer.from(data.subarray(4)).toString("latin1").startsWith("trellis.");
}

describe("a server's nonce", () => {
  const label = Buffer.from(transcript("trellis.session-proof.v1", "bootstrap.service")).toString("latin1");
  const hostile = [
    label,
    Buffer.from(transcript("trellis.rpc.request.v1", "subject", "reply")).toString("latin1"),
    "trellis.session-proof.v1",
    "",
    "short",
    "a".repeat(65),
    "XdUzrTy4JfOpYfY\n",
    "XdUzrTy4JfOp YfY",
    "é".repeat(12),
    "a".repeat(20_000),
  ];

  it("of another form than a nonce's is not signed", async () => {
    expect(hostile.filter(isNonce)).toEqual([]);
    const outcomes = await Promise.all(hostile.map(async (nonce) => ({ nonce, ...(await lured(nonce)) })));
    for (const { nonce, signed, connects } of outcomes) {
      expect(signed.filter((data) => isThis(data, nonce) || !isLabelled(data))).toEqual([]);
      for (const connect of connects) {
        const { sig, auth_token } = JSON.parse(connect.slice("CONNECT ".length)) as Record<string, unknown>;
        expect([sig || undefined, auth_token || undefined]).toEqual([undefined, undefined]);
      }
    }
  });

  it("of the right form is signed, and nothing else is", async () => {
    const nonce = "XdUzrTy4JfOpYfY";
    const { signed, connects } = await lured(nonce);
    expect(connects.length).toBeGreaterThan(0);
    const challenged = signed
      .map((data) => Buffer.from(data).toString())
      .filter((text) => !text.includes("trellis."));
    expect(new Set(challenged)).toEqual(new Set([nonce]));
    const shown = connects.map((line) => JSON.parse(line.slice("CONNECT ".length)) as Record<string, string>);
    for (const { nkey, sig, auth_token } of shown) {
      expect(nkey).toMatch(/^U[A-Z2-7]{55}$/);
      expect(sig).toMatch(/^[A-Za-z0-9_-]{86}$/);
      expect(auth_token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    }
  });
});
