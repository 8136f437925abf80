import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import {
  AUTHORIZATION_STREAM,
  authorizationGetSubject,
  NOTICE_STREAM,
  noticeGetSubject,
  revocationNoticeId,
  rpcSubject,
  type Signed,
} from "@trellis/protocol";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ControlPlaneConfig } from "./config/config.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { allowed, Caller, dial, digestOfAnswer, makeProcess } from "./process.test-kit.ts";

const stock = defineApi("acme.stock@v1", { rpc: { "Stock.Count": rpc(), "Stock.Reserve": rpc() } });
const stockService = defineService("acme.stock", { implements: [stock] });
const shop = defineApp("acme.shop", { uses: [use(stock)] });
const smallShop = defineApp("acme.shop", { uses: [use(stock, { rpc: ["Stock.Count"] })] });

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "trellis-life-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function start(
  config: Partial<ControlPlaneConfig> = {},
): Promise<{ plane: ControlPlane; caller: Caller }> {
  const plane = await startControlPlane({ dataDir: makeFolder(), mode: "dev", ...config });
  onTestFinished(() => plane.stop());
  return { plane, caller: new Caller(() => plane) };
}

function seen(plane: ControlPlane, connection: string): Promise<void> {
  return vi.waitFor(() => expect(plane.plane.tracker.socketOf(connection)).toBeDefined());
}

describe("a control plane over time", () => {
  it("comes back with its keys, its instances and its connections", async () => {
    const dataDir = makeFolder();
    const first = await startControlPlane({ dataDir, mode: "dev", devToken: "a-token-of-24-characters" });
    const who = makeProcess();
    const answer = await new Caller(() => first).admitted(who, stockService);
    const ports = first.nats;
    await first.stop();
    await first.stop();
    expect(await first.closed).toBe("stopped");
    const { plane, caller } = await start({
      dataDir,
      devToken: "a-token-of-24-characters",
      nats: { kind: "managed", port: ports?.port ?? 0, websocketPort: ports?.websocketPort ?? 0 },
    });
    expect(plane.rootFingerprint).toBe(first.rootFingerprint);
    const nats = await dial(who, answer);
    await nats.close();
    const again = await caller.admitted(who, stockService, {
      connection: answer.connection,
      artifact: false,
    });
    expect(again.assignment).toEqual(answer.assignment);
  });

  it("does not let another dev token take over, nor a server serve what dev mode made", async () => {
    const dataDir = makeFolder();
    const first = await startControlPlane({ dataDir, mode: "dev" });
    await new Caller(() => first).admitted(makeProcess(), stockService);
    await first.stop();
    const { plane, caller } = await start({ dataDir });
    expect(await caller.denied(makeProcess(), stockService)).toEqual({
      status: 403,
      code: "trellis.bootstrap.denied",
    });
    await plane.stop();
    await expect(startControlPlane({ dataDir, mode: "server" })).rejects.toThrow(/dev mode/);
  });

  it("ends what it started when a start fails", async () => {
    const dataDir = makeFolder();
    const { plane } = await start();
    const taken = Number(new URL(plane.url).port);
    await expect(startControlPlane({ dataDir, mode: "dev", http: { port: taken } })).rejects.toThrow(
      /EADDRINUSE/,
    );
    await (await startControlPlane({ dataDir, mode: "dev" })).stop();
  });

  it("in server mode knows only what was provisioned, and slows down guessers", async () => {
    const { plane, caller } = await start({ mode: "server", failuresPerMinute: 3 });
    const { core } = plane;
    (await core["Core.Participants.Install"]({ artifact: { ...stockService.artifact } })).orThrow();
    const { deployment } = (await core["Core.Deployments.Create"]({ participant: "acme.stock" })).orThrow();
    const { seed = "" } = (await core["Core.Instances.Provision"]({ deployment: deployment.id })).orThrow();
    const who = makeProcess(Buffer.from(seed, "base64url"));
    const answer = await caller.admitted(who, stockService, { artifact: false });
    expect(answer.assignment).toMatchObject({ deployment: deployment.id, name: "acme.stock" });
    expect(await caller.denied(who, shop)).toMatchObject({ code: "trellis.bootstrap.participant_mismatch" });
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await caller.denied(makeProcess(), stockService)).toEqual({
        status: 404,
        code: "trellis.bootstrap.unknown_instance",
      });
    }
    expect(await caller.denied(who, stockService)).toEqual({
      status: 429,
      code: "trellis.bootstrap.rate_limited",
    });
  });

  it("names the providers when several could be meant, and takes the one that was chosen", async () => {
    const { plane, caller } = await start();
    await caller.admitted(makeProcess(), stockService);
    const running = makeProcess();
    const before = await caller.admitted(running, shop);
    const second = (
      await plane.core["Core.Deployments.Create"]({ participant: "acme.stock", name: "acme.stock-two" })
    ).orThrow();
    expect(await caller.denied(makeProcess(), shop)).toEqual({
      status: 409,
      code: "trellis.bootstrap.binding_ambiguous",
    });
    // Who runs already keeps its provider.
    const kept = await caller.admitted(running, shop, {
      connection: before.connection,
      path: "/auth/context/refresh",
    });
    expect(kept.grants).toEqual(before.grants);
    expect(second.deployment.name).toBe("acme.stock-two");
  });
});

describe("connections over time", () => {
  it("are kicked when their authorization ended, and refused until they refresh", async () => {
    const { plane, caller } = await start({ authorization: { lifeMs: 700 }, connections: { sweepMs: 50 } });
    const who = makeProcess();
    const answer = await caller.admitted(who, stockService);
    const nats = await dial(who, answer);
    await seen(plane, answer.connection);
    await nats.closed();
    await expect(dial(who, answer)).rejects.toThrow(/authorization/i);
    const { connection } = answer;
    const refreshed = await caller.admitted(who, stockService, { connection, path: "/auth/context/refresh" });
    await (await dial(who, refreshed)).close();
  });

  it("keep their socket when a refresh gives as much or more, and lose it when it gives less", async () => {
    const { plane, caller } = await start();
    const stockAnswer = await caller.admitted(makeProcess(), stockService);
    const who = makeProcess();
    const answer = await caller.admitted(who, smallShop);
    const { connection } = answer;
    const nats = await dial(who, answer);
    await seen(plane, connection);
    await caller.admitted(who, smallShop, { connection });
    const wider = await caller.admitted(who, shop, { connection });
    const { deployment } = stockAnswer.assignment;
    const reserve = rpcSubject({ api: "acme.stock@v1", deployment, action: "Stock.Reserve" });
    expect(await allowed(nats, reserve)).toBe(false);
    await nats.close();
    const wide = await dial(who, wider);
    await seen(plane, connection);
    expect(await allowed(wide, reserve)).toBe(true);
    await caller.admitted(who, smallShop, { connection });
    await wide.closed();
    await expect(dial(who, wider)).rejects.toThrow(/authorization/i);
  });

  it("end with a notice, unless they are back at once; dev mode's instances go with them", async () => {
    const { plane, caller } = await start({ connections: { sweepMs: 50, ephemeralKeepMs: 1500 } });
    const who = makeProcess();
    const answer = await caller.admitted(who, stockService);
    const ends: string[] = [];
    const { app } = plane.plane.links;
    app.subscribe("ctl.notice.connection-end.*", {
      callback: (_, message) => void ends.push(message.json<Signed>().payload),
    });
    let nats: NatsConnection = await dial(who, answer);
    await seen(plane, answer.connection);
    await nats.close();
    nats = await dial(who, answer);
    await seen(plane, answer.connection);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(ends).toEqual([]);
    await nats.close();
    await vi.waitFor(() => expect(ends).toHaveLength(1), 5000);
    expect(JSON.parse(ends[0] ?? "")).toMatchObject({
      connection: answer.connection,
      instance: answer.assignment.instance,
    });
    const gone = async () => {
      const { instances } = (await plane.core["Core.Instances.List"]({ deployment: "acme.stock" })).orThrow();
      expect(instances).toEqual([]);
    };
    await vi.waitFor(gone, 5000);
    await expect(dial(who, answer)).rejects.toThrow(/authorization/i);
    const back = await caller.admitted(who, stockService, { connection: answer.connection });
    expect(back.connection).toBe(answer.connection);
  });

  it("survive a crash of the broker, and are found again", async () => {
    const { plane, caller } = await start();
    const who = makeProcess();
    const answer = await caller.admitted(who, stockService);
    const nats = await dial(who, answer);
    await seen(plane, answer.connection);
    await plane.nats?.restart({ kill: true });
    await nats.closed();
    await vi.waitFor(async () => expect((await fetch(`${plane.url}/readyz`)).status).toBe(200), 5000);
    const back = await dial(who, answer);
    await seen(plane, answer.connection);
    await back.close();
  });

  it("and revocations are written again when the streams were lost", async () => {
    const { plane, caller } = await start();
    const who = makeProcess();
    const answer = await caller.admitted(who, stockService);
    const revoked = await caller.admitted(makeProcess(), stockService);
    (await plane.core["Core.Connections.Kick"]({ id: revoked.connection, revoke: true })).orThrow();
    const { app, ctl } = plane.plane.links;
    const manager = await jetstreamManager(ctl, { checkAPI: false });
    await manager.streams.delete(AUTHORIZATION_STREAM);
    await manager.streams.delete(NOTICE_STREAM);
    await plane.plane.streams.ensure();
    const id = revocationNoticeId({ kind: "connection", id: revoked.connection });
    expect((await app.request(noticeGetSubject("revocation", id))).json<Signed>().payload).toContain(
      revoked.connection,
    );
    const stored = await app.request(authorizationGetSubject(digestOfAnswer(answer)));
    expect(stored.json<Signed>()).toEqual(answer.authorization);
    const route = await app.request(noticeGetSubject("route", answer.assignment.deployment));
    expect(route.json<Signed>().payload).toContain('"epoch":1');
  });
});
