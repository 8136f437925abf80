import { BOOTSTRAP_PATHS, type BootstrapAnswer, toBase64Url } from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type BootstrapChanges,
  bootstrap,
  type HttpAnswer,
  makeKeys,
  prepared,
  send,
  sendRaw,
} from "./http.ts";
import { shop, startScene, stockService } from "./scene.ts";

let trellis: TestTrellis;

beforeAll(async () => {
  trellis = await startScene();
});
afterAll(() => trellis?.stop());

const refusal = ({ status, code }: HttpAnswer) => [status, code];

function ask(changes: BootstrapChanges = {}, keys = makeKeys()): Promise<HttpAnswer> {
  return bootstrap(trellis, { keys, participant: stockService }, changes);
}

/** An honest request goes through, whatever was refused just before it. */
afterEach(async () => {
  expect((await ask()).status).toBe(200);
});

describe("the proof of a request", () => {
  it("covers body, path, purpose, origin and both keys", async () => {
    const stranger = makeKeys();
    const cases: Record<string, [BootstrapChanges, number, string]> = {
      "a body that was changed": [
        { tamper: (body) => body.replace('"version":1', '"version":1 ') },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
      "another identity key in the body": [
        { body: (body) => ({ ...body, identityKey: toBase64Url(stranger.identity.publicKey) }) },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
      "another session key in the body": [
        { body: (body) => ({ ...body, sessionKey: toBase64Url(stranger.session.publicKey) }) },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
      "an identity proof by another key": [
        { identityProofKey: stranger.identity },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
      "a session proof by another key": [
        { sessionProofKey: stranger.session },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
      "another purpose": [{ purpose: "context.refresh" }, 401, "trellis.bootstrap.proof_invalid"],
      "another origin": [{ origin: "https://trellis.example" }, 401, "trellis.bootstrap.proof_invalid"],
      "another port": [{ origin: "http://127.0.0.1:1" }, 401, "trellis.bootstrap.proof_invalid"],
      "no identity proof": [
        { headers: { "trellis-identity-proof": "" } },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
      "a proof that is none": [
        { headers: { "trellis-session-proof": "A".repeat(86) } },
        401,
        "trellis.bootstrap.proof_invalid",
      ],
    };
    const wrong: unknown[] = [];
    for (const [what, [changes, status, code]] of Object.entries(cases)) {
      const answer = await ask(changes);
      if (answer.status !== status || answer.code !== code) wrong.push([what, ...refusal(answer)]);
    }
    expect(wrong).toEqual([]);
  });

  it("made for one path does not open another", async () => {
    const request = capture();
    for (const path of [BOOTSTRAP_PATHS.client, BOOTSTRAP_PATHS.refresh]) {
      const answer = await send(`${trellis.url}${path}`, request);
      expect([400, 401]).toContain(answer.status);
    }
    expect((await send(`${trellis.url}${BOOTSTRAP_PATHS.service}`, request)).status).toBe(200);
  });

  it("is good for one use, also when many come at once", async () => {
    const request = capture();
    const url = `${trellis.url}${BOOTSTRAP_PATHS.service}`;
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(url, request)));
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
    expect(statuses).toEqual([200, ...Array<number>(7).fill(409)]);
    expect(refusal(await send(url, request))).toEqual([409, "trellis.bootstrap.request_replayed"]);
    // Another body under the id of a request that was taken.
    const requestId = toBase64Url(port.random(16));
    const keys = makeKeys();
    expect((await ask({ requestId }, keys)).status).toBe(200);
    expect(refusal(await ask({ requestId }, keys))).toEqual([409, "trellis.bootstrap.request_replayed"]);
  });

  it("is good for half a minute, before and after", async () => {
    for (const offset of [-86_400_000, -31_000, 31_000, 300_000, 86_400_000]) {
      const refused = await ask({ issuedAt: Date.now() + offset });
      expect(refusal(refused)).toEqual([401, "trellis.bootstrap.clock_skew"]);
      expect(JSON.parse(refused.text)).toHaveProperty("serverTime");
    }
    expect((await ask({ issuedAt: Date.now() + 25_000 })).status).toBe(200);
    // What was sent before this control plane began may have been used with the one before it.
    const { startedAt } = trellis.controlPlane.plane.bootstrap.authenticate;
    expect(refusal(await ask({ issuedAt: startedAt - 1 }))).toEqual([401, "trellis.bootstrap.clock_skew"]);
    for (const issuedAt of [0, -1, Number.MAX_SAFE_INTEGER, 1.5, Number.NaN]) {
      expect([400, 401]).toContain((await ask({ body: (body) => ({ ...body, issuedAt }) })).status);
    }
  });
});

/** An honest request on its way. */
function capture(): ReturnType<typeof prepared> {
  return prepared(trellis, { keys: makeKeys(), participant: stockService });
}

describe("a body", () => {
  const url = () => `${trellis.url}${BOOTSTRAP_PATHS.service}`;
  const json = { "content-type": "application/json" };

  it("that is huge, deep, doubled or no JSON is refused at once", async () => {
    const started = performance.now();
    const cases: [string, string | Uint8Array, number][] = [
      ["over the limit", Buffer.alloc(2 * 1024 * 1024, 0x20), 413],
      ["1 MiB of [", "[".repeat(1024 * 1024), 400],
      ["1 MiB of {", '{"a":'.repeat(200_000), 400],
      ["deep and closed", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, 400],
      ["a long string", `"${"x".repeat(1024 * 1024 - 2)}"`, 400],
      ["nothing", "", 400],
      ["no UTF-8", Buffer.from([0xff, 0xfe, 0x7b, 0x7d]), 400],
      ["null", "null", 400],
      ["a list", "[]", 400],
      ["a prototype", '{"__proto__":{"version":1}}', 400],
    ];
    const wrong: unknown[] = [];
    for (const [what, body, status] of cases) {
      const answer = await send(url(), {
        headers: { ...json, authorization: `Bearer ${trellis.devToken}` },
        body,
      });
      if (answer.status !== status || answer.code !== "trellis.bootstrap.invalid_request")
        wrong.push([what, ...refusal(answer)]);
    }
    expect(wrong).toEqual([]);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("that is sent in pieces without a length is cut off at the limit", async () => {
    const piece = `10000\r\n${"x".repeat(65_536)}\r\n`;
    const answer = await sendRaw(
      trellis.url,
      `POST ${BOOTSTRAP_PATHS.service} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${piece.repeat(40)}0\r\n\r\n`,
    ).catch(() => "reset");
    expect(answer).toMatch(/^HTTP\/1\.1 413|^reset/);
  });

  it("with members twice, more members or wrong ones is refused, though its proofs hold", async () => {
    const cases: BootstrapChanges[] = [
      { body: (body) => ({ ...body, admin: true }) },
      { body: (body) => ({ ...body, version: 2 }) },
      { body: (body) => ({ ...body, kind: "platform" }) },
      { body: (body) => ({ ...body, identityKey: "short" }) },
      { body: (body) => ({ ...body, identityKey: `${String(body["identityKey"])}=` }) },
      { body: (body) => ({ ...body, connection: "_INBOX.>" }) },
      { body: (body) => ({ ...body, connection: "x" }) },
      { body: (body) => ({ ...body, requestId: "" }) },
      { body: (body) => ({ ...body, name: "x".repeat(100_000) }) },
      { body: (body) => ({ ...body, participant: { id: "a.>", digest: "x" } }) },
    ];
    for (const changes of cases) {
      expect(refusal(await ask(changes))).toEqual([400, "trellis.bootstrap.invalid_request"]);
    }
  });

  it("of another content type is refused: a page can send those without being asked", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "",
    ]) {
      const refused = await ask({ headers: { "content-type": type } });
      expect([type, ...refusal(refused)]).toEqual([type, 415, "trellis.bootstrap.invalid_request"]);
    }
    for (const type of ["application/json", "application/json; charset=utf-8", "Application/JSON"]) {
      expect((await ask({ headers: { "content-type": type } })).status).toBe(200);
    }
  });
});

describe("a key of small order", () => {
  // The points whose multiples are few, in all their encodings. The last byte's top bit is no part of them: X25519
  // takes no notice of it, and for Ed25519 it is a sign.
  const exchange = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  ];
  const signing = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  ];
  /** Both spellings of each. */
  const texts = (points: readonly string[]) =>
    points.flatMap((hex) => {
      const [plain, topped] = [Buffer.from(hex, "hex"), Buffer.from(hex, "hex")];
      topped.writeUInt8(topped.readUInt8(31) | 0x80, 31);
      return [toBase64Url(plain), toBase64Url(topped)];
    });

  it("is no exchange key: all secrets that are shared with it are the same", async () => {
    for (const participant of [stockService, shop]) {
      for (const exchangeKey of texts(exchange)) {
        const changes = { body: (body: Record<string, unknown>) => ({ ...body, exchangeKey }) };
        const refused = await bootstrap(trellis, { keys: makeKeys(), participant }, changes);
        expect([exchangeKey, ...refusal(refused)]).toEqual([
          exchangeKey,
          400,
          "trellis.bootstrap.invalid_request",
        ]);
      }
    }
  });

  it("is neither identity nor session key: one signature would hold for every text", async () => {
    // With a key of order one, R = B and S = 1 is a signature of everything.
    const always = Buffer.from(
      `5866666666666666666666666666666666666666666666666666666666666666${"01".padEnd(64, "0")}`,
      "hex",
    );
    const forger = { ...makeKeys().identity, sign: () => Uint8Array.from(always) };
    for (const key of texts(signing)) {
      const identity = await ask({
        body: (body) => ({ ...body, identityKey: key }),
        identityProofKey: forger,
      });
      const session = await ask({
        body: (body) => ({ ...body, sessionKey: key }),
        sessionProofKey: forger,
      });
      for (const refused of [identity, session]) {
        expect([key, ...refusal(refused)]).toEqual([key, 400, "trellis.bootstrap.invalid_request"]);
      }
    }
  });

  it("is not provisioned by an administrator either", async () => {
    const { assignment } = JSON.parse((await ask()).text) as BootstrapAnswer;
    const { core } = trellis.controlPlane;
    const { deployment } = assignment;
    for (const identityKey of texts(signing)) {
      const refused = await core["Core.Instances.Provision"]({ deployment, identityKey });
      expect(refused.isErr() && refused.error).toMatchObject({ data: { problem: "identity_malformed" } });
    }
    const identityKey = toBase64Url(port.ed25519.keyPair().publicKey);
    expect((await core["Core.Instances.Provision"]({ deployment, identityKey })).isOk()).toBe(true);
  });
});
