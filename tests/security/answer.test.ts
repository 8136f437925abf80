import {
  type BootstrapAnswer,
  keyId,
  type Signed,
  signStatement,
  TransportError,
  toBase64Url,
} from "@trellis/protocol";
import { connectClientWith, nodePlatform, nodePort as port } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacker } from "./attacker.ts";
import { tamperedSource } from "./http.ts";
import { shop, startScene, startStock, startVault, warehouse } from "./scene.ts";

let trellis: TestTrellis;
let other: Attacker;

beforeAll(async () => {
  trellis = await startScene();
  await startStock(trellis);
  await startVault(trellis);
  other = await Attacker.join(trellis, warehouse);
});
afterAll(async () => {
  await other?.close();
  await trellis?.stop();
});

type Change = (answer: BootstrapAnswer) => BootstrapAnswer;

/** Connects a shop through a control plane, or a proxy before it, that changes its answers. */
function connectThrough(change: Change, root: string | undefined = trellis.root) {
  const source = tamperedSource(trellis, { participant: shop, change });
  return connectClientWith(
    {
      participant: shop,
      trellisUrl: trellis.url,
      timeout: 3_000,
      runtime: { log: false },
      ...(root === undefined ? {} : { root }),
    },
    { source, platform: { ...nodePlatform, discover: () => ({ production: false }) } },
  );
}

/** A statement with some of its members changed, and the signature as it was. */
function edited(signed: Signed, changes: object): Signed {
  const payload = { ...(JSON.parse(signed.payload) as object), ...changes };
  // Sorted as the canonical form is: nothing but the signature is wrong.
  const sorted = Object.fromEntries(Object.entries(payload).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { ...signed, payload: JSON.stringify(sorted) };
}

/** Signed over again by a key of the forger's. */
function resigned(signed: Signed, label: string): Signed {
  const key = port.ed25519.keyPair();
  const payload = { ...(JSON.parse(signed.payload) as object), issuer: keyId(port, key.publicKey) };
  return signStatement(port, { label, payload, key });
}

const longAgo = 1_000;

describe("an answer of the control plane", () => {
  it("is taken as it was signed", async () => {
    const client = (await connectThrough((answer) => answer)).orThrow();
    expect(client.connection.status.phase).toBe("connected");
    await client.close();
  });

  const changes: Record<string, Change> = {
    "another connection's authorization": (answer) => ({
      ...answer,
      authorization: other.answer.authorization,
    }),
    "an authorization with a longer life": (answer) => ({
      ...answer,
      authorization: edited(answer.authorization, { expiresAt: Number.MAX_SAFE_INTEGER }),
    }),
    "an authorization for another exchange key": (answer) => ({
      ...answer,
      authorization: edited(answer.authorization, {
        exchangeKey: toBase64Url(port.x25519.keyPair().publicKey),
      }),
    }),
    "an authorization that somebody else signed": (answer) => ({
      ...answer,
      authorization: resigned(answer.authorization, "trellis.authorization.v1"),
    }),
    "an authorization that is signed, but by another statement's signature": (answer) => ({
      ...answer,
      authorization: { ...answer.authorization, signature: answer.bindings[0]?.signature ?? "" },
    }),
    "another connection id": (answer) => ({ ...answer, connection: other.answer.connection }),
    "another deployment": (answer) => ({ ...answer, assignment: other.answer.assignment }),
    "another consumer's bindings": (answer) => ({ ...answer, bindings: other.answer.bindings }),
    "a binding to a route key of the forger's": (answer) => ({
      ...answer,
      bindings: answer.bindings.map((binding) =>
        edited(binding, { routeKey: toBase64Url(port.x25519.keyPair().publicKey) }),
      ),
    }),
    "a binding that somebody else signed": (answer) => ({
      ...answer,
      bindings: answer.bindings.map((binding) => resigned(binding, "trellis.binding.v1")),
    }),
    "a list of issuers under another root": (answer) => {
      const root = port.ed25519.keyPair();
      const payload = {
        ...(JSON.parse(answer.issuers.payload) as object),
        root: toBase64Url(root.publicKey),
      };
      return { ...answer, issuers: signStatement(port, { label: "trellis.issuers.v1", payload, key: root }) };
    },
    "a list with an issuer more": (answer) => {
      const { issuers } = JSON.parse(answer.issuers.payload) as { issuers: object[] };
      return { ...answer, issuers: edited(answer.issuers, { issuers: [...issuers, ...issuers] }) };
    },
    "grants for more than was signed": (answer) => ({
      ...answer,
      grants: {
        ...answer.grants,
        calls: answer.grants.calls.map((each) => ({ ...each, rpc: [...each.rpc, "Stock.Destroy"] })),
      },
    }),
    "another's grants": (answer) => ({ ...answer, grants: other.answer.grants }),
    "an authorization that is over": (answer) => ({
      ...answer,
      authorization: edited(answer.authorization, { notBefore: longAgo, expiresAt: longAgo + 1 }),
    }),
  };

  it.each(Object.entries(changes))("with %s is not", async (_, change) => {
    const refused = await connectThrough(change);
    const error = refused.isErr() ? refused.error : undefined;
    expect(error).toBeInstanceOf(TransportError);
    expect(error).toMatchObject({
      code: expect.stringMatching(/^trellis\.bootstrap\.(untrusted|participant_mismatch)$/) as unknown,
    });
  });

  it("under a root that is not the pinned one is not, though all else is right", async () => {
    const refused = await connectThrough((answer) => answer, toBase64Url(port.random(32)));
    expect(refused.isErr() && refused.error).toMatchObject({ code: "trellis.bootstrap.untrusted" });
  });

  it("over plain http from another machine is not even asked for", async () => {
    for (const trellisUrl of ["http://192.0.2.1:4000", "http://localhost.example.com", "ftp://127.0.0.1"]) {
      const refused = await connectClientWith(
        { participant: shop, trellisUrl, timeout: 2_000, runtime: { log: false } },
        { platform: { ...nodePlatform, discover: () => ({ production: false, devToken: "x".repeat(43) }) } },
      );
      expect(refused.isErr() && refused.error).toMatchObject({ code: "trellis.runtime.invalid_url" });
    }
  });
});
