import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  AUTHORIZATION,
  AUTHORIZATION_STREAM,
  type Authorization,
  authorizationDigest,
  deriveRpcKeys,
  encodeReplyFrame,
  fromBase64Url,
  keyId,
  RESULT_STATUS,
  type RpcKeys,
  type Signed,
  signStatement,
  storedAuthorizationSubject,
  toBase64Url,
} from "@trellis/protocol";
import { nodePort as port, systemClock } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { BrokerMonitor } from "../../packages/control-plane/src/connections/broker-monitor.ts";
import { Attacker, dialRaw, type Shot } from "./attacker.ts";
import { bootstrap } from "./http.ts";
import {
  type Stock,
  shop,
  startScene,
  startStock,
  startVault,
  stock,
  stockService,
  warehouse,
} from "./scene.ts";
import { wiretap } from "./wiretap.ts";

/** What an authorization that was taken away may still do at the most, ms. */
const boundMs = 1_000;

let trellis: TestTrellis;
let provider: Stock;
let bystander: Attacker;
/** Publishes anywhere in the account: a broker that lets everything through. */
let lax: NatsConnection;
/** By how much the control plane's clock is late, ms. */
let late = 0;

beforeAll(async () => {
  trellis = await startScene({
    controlPlane: {
      clock: { now: () => Date.now() - late, monotonic: () => systemClock.monotonic() },
      connections: { sweepMs: 3_600_000 },
      authorization: { lifeMs: 60_000 },
    },
  });
  provider = await startStock(trellis);
  await startVault(trellis);
  lax = trellis.controlPlane.plane.links.app;
  bystander = await Attacker.join(trellis, shop);
});
afterAll(async () => {
  await bystander?.close();
  await trellis?.stop();
});
beforeEach(() => {
  late = 0;
  provider.handled.length = 0;
  provider.slow.clear();
  provider.aborted.clear();
});

/** From now on the broker lets go of nobody. */
function keepSockets(): { mockRestore(): void } {
  return vi.spyOn(BrokerMonitor.prototype, "kick").mockResolvedValue();
}

/** Has the shot carried by the lax connection, and hears what the sender would hear. */
function carried(from: Attacker, shot: Shot): ReturnType<Attacker["ask"]> {
  return new Promise((resolve) => {
    from.hear(shot.reply, resolve);
    lax.publish(shot.subject, shot.bytes, { reply: shot.reply });
  });
}

function count(from: Attacker, input: string, changes: Parameters<Attacker["shot"]>[3] = {}): Shot {
  return from.shot(stock.id, "Stock.Count", input, changes);
}

async function bystanderIsUntouched(): Promise<void> {
  expect(await bystander.ask(count(bystander, "twin"))).toMatchObject({ results: [{ payload: 4 }] });
  expect(bystander.nats.isClosed()).toBe(false);
}

describe("a revoked connection", () => {
  it("is off the broker, ended in its process, and does not come back, all within the bound", async () => {
    const client = await trellis.client(warehouse);
    const attacker = await Attacker.join(trellis, warehouse);
    const pending = client.rpc.stock.slow("open");
    await expect.poll(() => provider.slow.size).toBe(1);
    const [row] = await connectionsOf("acme.warehouse", attacker.answer.connection);

    const started = performance.now();
    const { core } = trellis.controlPlane;
    await core["Core.Connections.Kick"]({ id: attacker.answer.connection, revoke: true });
    await core["Core.Connections.Kick"]({ id: row ?? "", revoke: true });
    await attacker.nats.closed();
    const reason = await client.connection.closed;
    expect(performance.now() - started).toBeLessThan(boundMs);
    expect(reason).toMatchObject({ type: "TransportError", code: "trellis.bootstrap.revoked" });
    expect(provider.aborted.has("open")).toBe(true);
    expect((await pending).isErr()).toBe(true);
    expect((await client.rpc.stock.count("after")).isErr()).toBe(true);

    await expect(dialRaw(attacker.keys, attacker.answer)).rejects.toThrow(/authorization/i);
    const again = await bootstrap(
      trellis,
      { keys: attacker.keys, participant: warehouse },
      { connection: attacker.answer.connection },
    );
    expect([again.status, again.code]).toEqual([403, "trellis.bootstrap.revoked"]);
    await bystanderIsUntouched();
  });

  it("is refused by the provider, and its open calls are aborted, when the broker does not let go of it", async () => {
    const kick = keepSockets();
    await using attacker = await Attacker.join(trellis, warehouse);
    const slow = attacker.shot(stock.id, "Stock.Slow", "held");
    attacker.fire(slow);
    await expect.poll(() => provider.slow.size).toBe(1);

    const started = performance.now();
    await trellis.controlPlane.core["Core.Connections.Kick"]({
      id: attacker.answer.connection,
      revoke: true,
    });
    await expect
      .poll(() => attacker.ask(count(attacker, "revoked")), { interval: 10 })
      .toMatchObject({
        authentic: true,
        results: [{ status: 1, payload: { type: "AuthError", details: { reason: "revoked" } } }],
      });
    expect(performance.now() - started).toBeLessThan(boundMs);
    await expect.poll(() => provider.aborted.get("held"), { interval: 5 }).toBeDefined();
    expect(attacker.nats.isClosed()).toBe(false);
    provider.handled.length = 0;
    await attacker.ask(count(attacker, "once more"));
    expect(provider.handled).toEqual([]);
    await bystanderIsUntouched();
    kick.mockRestore();
  });

  it("is known to a provider that starts later", async () => {
    const kick = keepSockets();
    await using attacker = await Attacker.join(trellis, warehouse);
    await trellis.controlPlane.core["Core.Connections.Kick"]({
      id: attacker.answer.connection,
      revoke: true,
    });
    const replica = await startStock(trellis);
    const echoes = await Promise.all(
      Array.from({ length: 20 }, () => attacker.ask(count(attacker, "revoked"))),
    );
    expect(
      new Set(echoes.map((echo) => JSON.stringify(echo?.kind === "results" && echo.results[0]?.status))),
    ).toEqual(new Set(["1"]));
    expect([...replica.handled, ...provider.handled]).toEqual([]);
    await replica.service.stop();
    kick.mockRestore();
  });
});

/** Live connections of a participant, but for one. */
async function connectionsOf(participant: string, but: string): Promise<string[]> {
  const answer = await trellis.controlPlane.core["Core.Connections.List"]({});
  return answer
    .orThrow()
    .connections.filter(
      (row) => row.participant.id === participant && row.id !== but && row.state === "connected",
    )
    .map(({ id }) => id);
}

describe("an expired authorization", () => {
  it("is refused by the provider, by the callout, and has no effect on one that is not", async () => {
    const kick = keepSockets();
    late = 120_000;
    // Of two minutes ago: its minute is over when the clock is right again. The control plane was up then.
    const deps = trellis.controlPlane.plane.bootstrap.authenticate;
    const startedAt = deps.startedAt;
    deps.startedAt = 0;
    const keys = await joinAt(Date.now() - late);
    late = 0;
    deps.startedAt = startedAt;
    await using expired = keys;
    expect(await expired.ask(count(expired, "expired"))).toMatchObject({
      authentic: true,
      results: [{ status: 1, payload: { type: "AuthError", details: { reason: "expired" } } }],
    });
    expect(provider.handled).toEqual([]);
    await expect(dialRaw(expired.keys, expired.answer)).rejects.toThrow(/authorization/i);
    await bystanderIsUntouched();
    kick.mockRestore();
  });
});

function joinAt(issuedAt: number): Promise<Attacker> {
  return Attacker.join(trellis, shop, undefined, { issuedAt });
}

/** Writes into the platform's own store, which no application can. */
async function store(
  signed: Signed,
  digest = authorizationDigest(port, signed.payload),
): Promise<Uint8Array> {
  const { publisher } = trellis.controlPlane.plane.streams;
  await publisher.authorization(digest, signed, 60_000);
  expect(storedAuthorizationSubject(digest)).toContain(digest);
  return fromBase64Url(digest) ?? new Uint8Array();
}

describe("an authorization that nobody of authority has signed", () => {
  const facts = (from: Attacker): Authorization => ({
    ...(JSON.parse(from.answer.authorization.payload) as Authorization),
    notBefore: Date.now() - 1,
  });
  const asked = (digest: Uint8Array) =>
    bystander.ask(
      count(bystander, "forged", {
        header: { digest, counter: 1 },
        keys: bystander.keysFor(stock.id, digest),
      }),
    );

  it("is worth nothing, though it lies in the store; the issuer's is worth all", async () => {
    const { issuer: _, version: __, ...claims } = facts(bystander);
    const { principal } = claims;
    if (principal.kind !== "service" && principal.kind !== "app") throw new Error("another kind");
    const { statements } = trellis.controlPlane.plane;
    const honest = statements.authorization({ ...claims, principal: { ...principal, kind: principal.kind } });
    expect(await asked(await store(honest))).toMatchObject({ kind: "results", results: [{ payload: 6 }] });
    provider.handled.length = 0;

    const key = port.ed25519.keyPair();
    const label = AUTHORIZATION.label;
    const stranger = { ...facts(bystander), issuer: keyId(port, key.publicKey), notBefore: Date.now() - 2 };
    const impostor = { ...facts(bystander), notBefore: Date.now() - 3 };
    for (const signed of [
      // By a key that is no issuer, under its own name and under a true issuer's.
      signStatement(port, { label, payload: stranger, key }),
      signStatement(port, { label, payload: impostor, key }),
      // A true signature of something else, and one under another label.
      {
        payload: signStatement(port, { label, payload: impostor, key }).payload,
        signature: honest.signature,
      },
      signStatement(port, {
        label: "trellis.binding.v1",
        payload: impostor,
        key: trellis.controlPlane.plane.keys.root,
      }),
      // By the root, which signs issuers and nothing else.
      signStatement(port, {
        label,
        payload: { ...impostor, notBefore: 5 },
        key: trellis.controlPlane.plane.keys.root,
      }),
    ]) {
      expect(await asked(await store(signed))).toEqual({ kind: "refusal", code: "unknown-authorization" });
    }
    // A true one under another's digest.
    const wrong = await store(honest, toBase64Url(port.random(32)));
    expect(await asked(wrong)).toEqual({ kind: "refusal", code: "unknown-authorization" });
    expect(provider.handled).toEqual([]);
  });
});

/** The public exchange key of an authorization, as every provider can read it. */
async function exchangeKeyOf(digest: Uint8Array): Promise<Uint8Array> {
  const manager = await jetstreamManager(trellis.controlPlane.plane.links.ctl, { checkAPI: false });
  const subject = storedAuthorizationSubject(toBase64Url(digest));
  const stored = await manager.streams.getMessage(AUTHORIZATION_STREAM, { last_by_subj: subject });
  const { payload } = JSON.parse(stored?.string() ?? "") as Signed;
  const { exchangeKey } = JSON.parse(payload) as Authorization;
  return fromBase64Url(exchangeKey) ?? new Uint8Array();
}

describe("the route key of an instance that was disabled", () => {
  it("is void at once: neither requests nor replies are forged with it, and its holder gets no new one", async () => {
    const tap = wiretap();
    const victim = await trellis.client(warehouse, { platform: tap.platform });
    await using sibling = await Attacker.join(trellis, stockService);
    await using caller = await Attacker.join(trellis, warehouse);
    const [epoch, routeKey] = [...sibling.routeKeys()].at(-1) ?? [];
    if (epoch === undefined || routeKey === undefined)
      throw new Error("no route key was sealed to the replica");
    /** The keys of a caller as the route's holder derives them, without the caller's secret. */
    const stolen = (at = epoch): RpcKeys => {
      const { exchangeKey } = JSON.parse(caller.answer.authorization.payload) as Authorization;
      const shared = routeKey.shared(fromBase64Url(exchangeKey) ?? new Uint8Array());
      return deriveRpcKeys(port, { shared, digest: caller.digest, epoch: at });
    };
    // Before, it holds: a replica can pass for its callers towards its siblings. That is the documented limit.
    const before = count(caller, "stolen", { keys: stolen(), header: { counter: 100 } });
    expect(await carried(caller, before)).toMatchObject({ authentic: true, results: [{ payload: 6 }] });
    provider.handled.length = 0;

    const started = performance.now();
    await trellis.controlPlane.core["Core.Instances.Disable"]({ id: sibling.answer.assignment.instance });
    await sibling.nats.closed();
    const forged = () =>
      carried(caller, count(caller, "stolen", { keys: stolen(), header: { counter: 101, epoch } }));
    await expect.poll(forged, { interval: 10 }).toEqual({ kind: "refusal", code: "stale-epoch" });
    expect(performance.now() - started).toBeLessThan(boundMs);
    const renamed = count(caller, "stolen", {
      keys: stolen(epoch + 1),
      header: { counter: 1, epoch: epoch + 1 },
    });
    expect(await carried(caller, renamed)).toEqual({ kind: "refusal", code: "malformed" });
    provider.handled.length = 0;

    // Honest callers go on, without a break that anybody would notice.
    expect((await victim.rpc.stock.count("four", { timeout: 2_000 })).orThrow()).toBe(4);
    expect(provider.handled).toEqual(["count four"]);
    expect(performance.now() - started).toBeLessThan(3_000);

    // An answer under the old key is none.
    const pending = victim.rpc.stock.slow("answered");
    await expect.poll(() => provider.slow.size).toBe(1);
    const { reply, data } = tap.last("rpc.v1.acme_stock@v1.");
    const digest = data.slice(6, 38);
    const results = [{ requestId: data.slice(55, 71), status: RESULT_STATUS.ok, payload: '"forged"' }];
    const theirs = await exchangeKeyOf(digest);
    for (const at of [epoch, epoch + 1]) {
      const shared = routeKey.shared(theirs);
      const { reply: key } = deriveRpcKeys(port, { shared, digest, epoch: at });
      lax.publish(reply, encodeReplyFrame(port, { epoch: at, results, reply, key }));
    }
    await lax.flush();
    expect((await victim.rpc.stock.count("four")).orThrow()).toBe(4);
    provider.slow.get("answered")?.();
    expect((await pending).orThrow()).toBe("answered");

    const again = await bootstrap(trellis, { keys: sibling.keys, participant: stockService });
    expect([again.status, again.code]).toEqual([403, "trellis.bootstrap.instance_disabled"]);
    await expect(dialRaw(sibling.keys, sibling.answer)).rejects.toThrow(/authorization/i);
  });
});
