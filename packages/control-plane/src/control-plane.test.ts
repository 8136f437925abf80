import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import {
  AUTHORIZATION,
  authorizationGetSubject,
  inboxPrefix,
  noticeGetSubject,
  openRouteKey,
  REVOCATION,
  revocationNoticeId,
  rpcSubject,
  type Signed,
  toBase64Url,
  verifyIssuers,
  verifyStatement,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import { Type } from "typebox";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import {
  allowed,
  Caller,
  dial,
  digestOfAnswer,
  makeProcess,
  maySubscribe,
  type Presented,
  type Process,
} from "./process.test-kit.ts";

const stock = defineApi("acme.stock@v1", {
  rpc: { "Stock.Count": rpc({ input: Type.String(), output: Type.Number() }), "Stock.Reserve": rpc() },
});
const stockService = defineService("acme.stock", { implements: [stock] });
const shop = defineApp("acme.shop", { uses: [use(stock, { rpc: ["Stock.Count"] })] });

let folder: string;
let plane: ControlPlane;
const steps: string[] = [];
const log: { code?: unknown }[] = [];
const record = (fields: object) => void log.push(fields);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "trellis-plane-"));
  plane = await startControlPlane({
    dataDir: folder,
    mode: "dev",
    say: (step) => steps.push(step),
    log: { debug: record, info: record, warn: record, error: record },
    connections: { sweepMs: 50, ephemeralKeepMs: 60_000 },
  });
});
afterAll(async () => {
  await plane.stop();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  log.length = 0;
});

const caller = new Caller(() => plane);

function refusals(): unknown[] {
  return log.map((entry) => entry.code).filter((code) => String(code).startsWith("trellis.callout."));
}

describe("bootstrap", () => {
  it("installs, deploys and provisions what holds the dev token, each step said once", async () => {
    const who = makeProcess();
    expect(await caller.denied(who, stockService, { token: null })).toEqual({
      status: 401,
      code: "trellis.bootstrap.dev_token_required",
    });
    expect(await caller.denied(who, stockService, { token: "x".repeat(43) })).toMatchObject({ status: 401 });
    expect(await caller.denied(who, stockService, { artifact: false })).toMatchObject({
      code: "trellis.bootstrap.artifact_required",
    });
    const answer = await caller.admitted(who, stockService);
    expect(steps).toEqual(["installed acme.stock", "provisioned an instance of acme.stock"]);
    expect(answer.assignment.name).toBe("acme.stock");
    const again = await caller.admitted(who, stockService, { artifact: false, token: null });
    expect(again.assignment).toEqual(answer.assignment);
    expect(again.connection).not.toBe(answer.connection);
    expect(steps).toHaveLength(2);
  });

  it("answers with statements that verify, and route keys that open", async () => {
    const who = makeProcess();
    const answer = await caller.admitted(who, stockService);
    const issuers = verifyIssuers(port, {
      signed: answer.issuers,
      pinnedRoot: plane.rootFingerprint,
    }).orThrow();
    const input = { ...AUTHORIZATION, signed: answer.authorization, issuers, now: Date.now() };
    const authorization = verifyStatement(port, input).orThrow();
    expect(authorization).toMatchObject({
      principal: { kind: "service", id: "acme.stock" },
      deployment: answer.assignment.deployment,
      sessionKey: toBase64Url(who.session.publicKey),
      inbox: inboxPrefix(answer.connection),
    });
    const [sealed] = answer.route;
    const { deployment } = answer.assignment;
    const opening = { deployment, authorization: digestOfAnswer(answer), exchange: who.exchange };
    const secret = sealed === undefined ? undefined : openRouteKey(port, { sealed, ...opening });
    const routeKey = port.x25519.keyPair(secret).publicKey;
    const shopAnswer = await caller.admitted(makeProcess(), shop);
    const binding = JSON.parse(shopAnswer.bindings[0]?.payload ?? "") as {
      routeKey: string;
      deployment: string;
    };
    expect(binding).toMatchObject({ deployment, routeKey: toBase64Url(routeKey) });
    expect(shopAnswer.route).toEqual([]);
    expect(shopAnswer.grants.calls).toMatchObject([
      { api: "acme.stock@v1", deployment, rpc: ["Stock.Count"] },
    ]);
  });

  it("refuses wrong proofs, replays, skewed clocks and foreign surroundings", async () => {
    const who = makeProcess();
    expect(await caller.denied(who, stockService, { proofKey: makeProcess().identity })).toEqual({
      status: 401,
      code: "trellis.bootstrap.proof_invalid",
    });
    expect(await caller.denied(who, stockService, { origin: "https://evil.example" })).toMatchObject({
      code: "trellis.bootstrap.proof_invalid",
    });
    const requestId = toBase64Url(port.random(16));
    await caller.admitted(who, stockService, { requestId });
    expect(await caller.denied(who, stockService, { requestId })).toEqual({
      status: 409,
      code: "trellis.bootstrap.request_replayed",
    });
    for (const issuedAt of [Date.now() - 31_000, Date.now() + 31_000]) {
      const { body } = await caller.post(who, stockService, { issuedAt });
      expect(body).toMatchObject({
        code: "trellis.bootstrap.clock_skew",
        serverTime: expect.closeTo(Date.now(), -4) as number,
      });
    }
    for (const headers of [
      { host: "evil.example" },
      { origin: "https://evil.example" },
      { "x-forwarded-for": "127.0.0.1" },
      { forwarded: "for=127.0.0.1" },
    ]) {
      expect(await caller.denied(who, stockService, { headers: headers as Record<string, string> })).toEqual({
        status: 403,
        code: "trellis.bootstrap.origin_refused",
      });
    }
    const json = { "content-type": "application/json" };
    const large = await caller.send("/bootstrap/service", json, new Uint8Array(1024 * 1024 + 1));
    expect(large.status).toBe(413);
    const garbled = await caller.send("/bootstrap/service", json, Buffer.from('{"version":1,"version":1}'));
    expect(garbled).toMatchObject({ status: 400, body: { code: "trellis.bootstrap.invalid_request" } });
  });

  it("keeps a connection id for the same keys only", async () => {
    const who = makeProcess();
    const first = await caller.admitted(who, stockService);
    const { connection } = first;
    const refreshed = await caller.admitted(who, stockService, { connection });
    expect(refreshed.connection).toBe(connection);
    expect(digestOfAnswer(refreshed)).not.toBe(digestOfAnswer(first));
    const other = { ...makeProcess(), identity: who.identity };
    expect(await caller.denied(other, stockService, { connection })).toEqual({
      status: 409,
      code: "trellis.bootstrap.connection_mismatch",
    });
  });
});

describe("callout", () => {
  it("lets a connection do exactly what its policy says", async () => {
    const service = await caller.linked(makeProcess(), stockService);
    const { nats: client, answer } = await caller.linked(makeProcess(), shop);
    const { deployment } = service.answer.assignment;
    const count = rpcSubject({ api: "acme.stock@v1", deployment, action: "Stock.Count" });
    const reserve = rpcSubject({ api: "acme.stock@v1", deployment, action: "Stock.Reserve" });
    service.nats.subscribe(count, { queue: count, callback: (_, message) => void message.respond("7") });
    await service.nats.flush();
    // The inbox of a real caller ends in r.<n>; only such may be answered.
    const reply = `${inboxPrefix(answer.connection)}.r.1`;
    const got = new Promise<string>((resolve) => {
      client.subscribe(reply, { callback: (_, message) => resolve(message.string()) });
    });
    client.publish(count, "x", { reply });
    expect(await got).toBe("7");
    expect(await allowed(client, reserve)).toBe(false);
    for (const subject of [
      "$SYS.REQ.USER.INFO",
      "$JS.API.INFO",
      "ctl.get.authorization.x",
      "_INBOX.other.r.1",
      "health.v1.app.a.b",
    ]) {
      expect([subject, await allowed(client, subject)]).toEqual([subject, false]);
    }
    for (const subject of [
      ">",
      "_INBOX.>",
      `_INBOX.${service.answer.connection}.>`,
      "$SYS.>",
      "rpc.>",
      count,
      "ctl.v1.>",
    ]) {
      expect([subject, await maySubscribe(client, subject)]).toEqual([subject, false]);
    }
    expect(await maySubscribe(service.nats, count)).toBe(false);
    expect(await maySubscribe(service.nats, count, "other")).toBe(false);
    expect(await maySubscribe(service.nats, count, count)).toBe(true);
    const authorization = await service.nats.request(authorizationGetSubject(digestOfAnswer(answer)));
    expect(authorization.json<Signed>()).toEqual(answer.authorization);
    const route = await client.request(noticeGetSubject("route", deployment));
    expect(route.json<Signed>().payload).toContain(deployment);
  });

  it("refuses a wrong nonce signature, a foreign, missing or unknown token, and another's session key", async () => {
    const who = makeProcess();
    const answer = await caller.admitted(who, stockService);
    const stranger = makeProcess();
    const attempts: [string, Process, Presented][] = [
      ["nonce_signature_invalid", who, { sign: () => stranger.session.sign(Buffer.from("x")) }],
      ["token_missing", who, { token: undefined }],
      ["authorization_unknown", who, { token: toBase64Url(port.random(32)) }],
      ["session_key_mismatch", stranger, {}],
    ];
    for (const [code, process_, presented] of attempts) {
      log.length = 0;
      await expect(dial(process_, answer, presented)).rejects.toThrow(/authorization/i);
      expect(refusals()).toEqual([`trellis.callout.${code}`]);
    }
    for (const presented of [
      { sign: () => new Uint8Array(64) },
      { sign: () => new Uint8Array() },
      { token: "short" },
    ]) {
      await expect(dial(who, answer, presented)).rejects.toThrow(/authorization/i);
    }
    await expect(connect({ servers: answer.transports.tcp, reconnect: false })).rejects.toThrow(
      /authorization/i,
    );
  });

  it("gives a connection one socket: the newer one displaces the older", async () => {
    const who = makeProcess();
    const { answer, nats } = await caller.linked(who, stockService);
    const newer = await dial(who, answer);
    onTestFinished(() => newer.close());
    await nats.closed();
    expect(newer.isClosed()).toBe(false);
    await newer.flush();
  });
});

describe("taking authority away", () => {
  it("of an instance: kicked, refused, told, and the route rolled at once", async () => {
    const { core } = plane;
    const [deployment] = (await core["Core.Deployments.List"]({}))
      .orThrow()
      .deployments.filter((row) => row.name === "acme.stock");
    const provisioned = (
      await core["Core.Instances.Provision"]({ deployment: deployment?.id ?? "" })
    ).orThrow();
    const who = makeProcess(Buffer.from(provisioned.seed ?? "", "base64url"));
    const { answer, nats } = await caller.linked(who, stockService);
    const bystander = await caller.linked(makeProcess(), stockService);
    const told = new Promise<Signed>((resolve) => {
      bystander.nats.subscribe("ctl.notice.>", {
        callback: (_, message) => {
          if (message.subject.startsWith("ctl.notice.revocation.")) resolve(message.json<Signed>());
        },
      });
    });
    await bystander.nats.flush();
    (await core["Core.Instances.Disable"]({ id: provisioned.instance.id, reason: "lost" })).orThrow();
    await nats.closed();
    const issuers = verifyIssuers(port, { signed: answer.issuers }).orThrow();
    const revocation = verifyStatement(port, {
      ...REVOCATION,
      signed: await told,
      issuers,
      now: Date.now(),
    }).orThrow();
    expect(revocation).toMatchObject({
      subject: { kind: "instance", id: provisioned.instance.id },
      reason: "lost",
    });
    await expect(dial(who, answer)).rejects.toThrow(/authorization/i);
    expect(refusals()).toContain("trellis.callout.authorization_revoked");
    expect(await caller.denied(who, stockService)).toEqual({
      status: 403,
      code: "trellis.bootstrap.instance_disabled",
    });
    expect(bystander.nats.isClosed()).toBe(false);
    const rolled = (await core["Core.Deployments.Get"]({ id: deployment?.id ?? "" })).orThrow().deployment;
    expect(rolled.epoch).toBe((deployment?.epoch ?? 0) + 1);
    (await core["Core.Instances.Enable"]({ id: provisioned.instance.id })).orThrow();
    const back = await caller.admitted(who, stockService);
    expect(JSON.parse(back.authorization.payload)).toMatchObject({ notBefore: expect.any(Number) as number });
    expect((JSON.parse(back.authorization.payload) as { notBefore: number }).notBefore).toBeGreaterThan(
      revocation.at,
    );
    await (await dial(who, back)).close();
  });

  it("of a connection: ended for good, and only it", async () => {
    const who = makeProcess();
    const { answer, nats } = await caller.linked(who, stockService);
    const { connection } = answer;
    expect((await plane.core["Core.Connections.Kick"]({ id: connection, revoke: true })).orThrow()).toEqual({
      kicked: true,
    });
    await nats.closed();
    expect(await caller.denied(who, stockService, { connection })).toEqual({
      status: 403,
      code: "trellis.bootstrap.revoked",
    });
    const notice = await plane.plane.links.app.request(
      noticeGetSubject("revocation", revocationNoticeId({ kind: "connection", id: connection })),
    );
    expect(notice.json<Signed>().payload).toContain(connection);
    await caller.admitted(who, stockService);
  });
});
