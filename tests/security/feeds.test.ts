import { defineApi, defineApp, defineService, feed, rpc, use } from "@trellis/contract";
import {
  controlSubject,
  decodeFeedFrame,
  encodeFeedControl,
  encodeFeedEnd,
  encodeFeedItems,
  type FeedNoteKind,
  type FeedOpened,
  feedSubject,
  fromHex,
  type MacKey,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Attacker, type Shot, type ShotChanges } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import { startScene } from "./scene.ts";

const market = defineApi("acme.market@v1", {
  rpc: { "Market.Ping": rpc({ output: Type.String() }) },
  feeds: {
    "Market.Prices": feed({ event: Type.Integer() }),
    "Market.Secrets": feed({ event: Type.String() }),
  },
});
const marketService = defineService("acme.market", { implements: [market] });
const trader = defineApp("acme.trader", {
  uses: [use(market, { rpc: ["Market.Ping"], feeds: ["Market.Prices"] })],
});
const rival = defineApp("evil.rival", {
  uses: [use(market, { rpc: ["Market.Ping"], feeds: ["Market.Prices"] })],
});
const neighbour = defineApi("evil.neighbour@v1", {
  feeds: { "Market.Prices": feed({ event: Type.Integer() }) },
});
const neighbourService = defineService("evil.neighbour", {
  implements: [neighbour],
  uses: [use(market, { rpc: ["Market.Ping"], feeds: [] })],
});

let trellis: TestTrellis;
let caller: Attacker;
let other: Attacker;
let neighbours: Attacker;
let connection: string;
let deployment: string;
/** Producers that run, by the connection that they produce for, and why the others ended. */
const running = new Map<string, number>();
const reasons: string[] = [];
let started = 0;

beforeAll(async () => {
  trellis = await startScene();
  const service = await trellis.service(marketService, ({ handle }) => {
    handle.rpc.market.ping(() => "pong");
    handle.feed.market.secrets(async ({ emit }) => emit("the secret"));
    handle.feed.market.prices(async ({ emit, context, signal }) => {
      const { connectionId } = context.caller;
      const change = (by: number) => running.set(connectionId, (running.get(connectionId) ?? 0) + by);
      started += 1;
      change(1);
      await emit(started);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      change(-1);
      reasons.push(String(signal.reason.type), String(signal.reason.reason));
    });
  });
  connection = service.auth.connectionId;
  deployment = service.auth.deployment;
  await trellis.service(neighbourService, ({ handle }) =>
    handle.feed.market.prices(async ({ emit }) => emit(1)),
  );
  caller = await Attacker.join(trellis, trader);
  other = await Attacker.join(trellis, rival);
  neighbours = await Attacker.join(trellis, neighbourService);
});
afterAll(async () => {
  await Promise.all([caller?.close(), other?.close(), neighbours?.close()]);
  await trellis?.stop();
});
beforeEach(async () => {
  await expect.poll(() => [...running.values()].filter((count) => count > 0)).toEqual([]);
  running.clear();
  reasons.length = 0;
  started = 0;
});

const prices = () => feedSubject({ api: market.id, deployment, action: "Market.Prices" });

/** The frame that opens a feed, honest but for the changes. */
function opening(from: Attacker, frames: string, changes: ShotChanges & { action?: string } = {}): Shot {
  const action = changes.action ?? "Market.Prices";
  const subject = feedSubject({ api: market.id, deployment, action });
  return from.shot(market.id, action, { input: null, frames }, { subject, ...changes });
}

interface Opened extends FeedOpened {
  readonly from: Attacker;
  readonly frames: string;
  /** What came to the session's subject. */
  readonly heard: Uint8Array[];
}

async function open(from: Attacker): Promise<Opened> {
  const frames = from.reply();
  const heard: Uint8Array[] = [];
  from.nats.subscribe(frames, { callback: (_, message) => void heard.push(message.data.slice()) });
  const echo = await from.ask(opening(from, frames));
  if (echo?.kind !== "results") throw new Error(`not opened: ${JSON.stringify(echo)}`);
  return { ...(echo.results[0]?.payload as FeedOpened), from, frames, heard };
}

interface NoteChanges {
  readonly from?: Attacker;
  readonly digest?: Uint8Array;
  readonly key?: MacKey;
  readonly nonce?: number;
  readonly counter?: number;
  readonly target?: string;
  readonly received?: number;
}

/** What a consumer says of its session, honest but for the changes. */
function note(session: Opened, kind: FeedNoteKind, changes: NoteChanges = {}): Shot {
  const from = changes.from ?? session.from;
  const { epoch } = from.binding(market.id);
  const subject = controlSubject(deployment, changes.target ?? connection);
  const reply = from.reply();
  const nonce = changes.nonce ?? (kind === "answer" ? session.challenge : 0);
  const counter = changes.counter ?? from.nextCounter();
  const received = changes.received ?? 0;
  const bytes = encodeFeedControl(port, {
    header: { epoch, digest: changes.digest ?? from.digest, counter, issuedAt: Date.now() },
    notes: [
      { session: fromHex(session.session) ?? new Uint8Array(16), kind, nonce, received, consumed: received },
    ],
    subject,
    reply,
    key: changes.key ?? from.keysFor(market.id).request,
  });
  return { subject, reply, bytes };
}

/** Waits until the provider has looked at everything that was sent so far. */
async function settled(...from: Attacker[]): Promise<void> {
  for (const each of from) {
    const echo = await each.ask(each.shot(market.id, "Market.Ping", null));
    expect(echo).toMatchObject({ authentic: true, results: [{ status: 0 }] });
  }
}

describe("the broker", () => {
  it("lets only the owner serve a feed, and only those open it who use it", async () => {
    expect(await mayPublish(caller.nats, prices())).toBe(true);
    const secrets = feedSubject({ api: market.id, deployment, action: "Market.Secrets" });
    expect(await mayPublish(caller.nats, secrets)).toBe(false);
    expect(await mayPublish(neighbours.nats, prices())).toBe(false);
    for (const { nats } of [caller, other, neighbours]) {
      expect(await maySubscribe(nats, prices())).toBe(false);
      expect(await maySubscribe(nats, prices(), prices())).toBe(false);
      expect(await maySubscribe(nats, "feed.v1.>")).toBe(false);
      expect(await maySubscribe(nats, controlSubject(deployment, connection))).toBe(false);
    }
    const own = feedSubject({
      api: neighbour.id,
      deployment: neighbours.deployment,
      action: "Market.Prices",
    });
    expect(await maySubscribe(neighbours.nats, own, own)).toBe(true);
    // As a member of the queue and not as a listener beside it.
    expect(await maySubscribe(neighbours.nats, own)).toBe(false);
  });

  it("keeps the frames of a session from everybody else", async () => {
    const session = await open(caller);
    expect(await maySubscribe(other.nats, session.frames)).toBe(false);
    expect(await maySubscribe(neighbours.nats, session.frames)).toBe(false);
    expect(await mayPublish(other.nats, session.frames)).toBe(false);
  });
});

describe("an open", () => {
  it("of a feed that the caller was not granted is refused by the provider too", async () => {
    const shot = opening(caller, caller.reply(), { action: "Market.Secrets" });
    const lax = trellis.controlPlane.plane.links.app;
    const answered = new Promise((resolve) => caller.hear(shot.reply, resolve));
    lax.publish(shot.subject, shot.bytes, { reply: shot.reply });
    expect(await answered).toMatchObject({
      authentic: true,
      results: [{ status: 1, payload: { type: "AuthError", details: { reason: "not_granted" } } }],
    });
  });

  it("sends frames nowhere but to the caller's own inbox", async () => {
    for (const frames of [
      other.reply(),
      `${caller.inbox}.j.x`,
      `${caller.inbox}.r.`,
      `${caller.inbox}.r.a.b`,
      `${caller.inbox}.r.*`,
      "rpc.v1.x",
      "ctl.notice.route.x",
    ]) {
      expect(await caller.ask(opening(caller, frames)), frames).toMatchObject({
        results: [
          { status: 1, payload: { type: "ValidationError", details: { errors: [{ path: "/frames" }] } } },
        ],
      });
    }
    expect(started).toBe(0);
  });

  it("starts nothing by itself, and nothing when its challenge is answered by a guess or by another", async () => {
    const session = await open(caller);
    caller.fire(note(session, "answer", { nonce: session.challenge + 1 }));
    caller.fire(note(session, "resume"));
    caller.fire(note(session, "state"));
    other.fire(note(session, "answer", { from: other }));
    await settled(caller, other);
    expect(started).toBe(0);
    caller.fire(note(session, "answer"));
    await expect.poll(() => started).toBe(1);
    // Answered again, it is not started again.
    caller.fire(note(session, "answer"));
    await settled(caller);
    expect(started).toBe(1);
    caller.fire(note(session, "close"));
  });

  it("that is garbage harms nobody: honest ones in between are answered", async () => {
    const subject = prices();
    const text = (value: string) => new TextEncoder().encode(value);
    const garbage = ["", "{", "null", "\ufeff{}", "[".repeat(500_000)].map(text);
    garbage.push(Uint8Array.of(0xff, 0xfe, 0xfd), Uint8Array.from(port.random(300)));
    for (const bytes of garbage) {
      caller.fire({ subject, reply: caller.reply(), bytes });
      caller.nats.publish(subject, bytes);
      for (const input of [
        7,
        { input: null },
        { input: null, frames: 1 },
        { input: null, frames: "x", more: 1 },
      ]) {
        const shot = caller.shot(market.id, "Market.Prices", input, { subject });
        expect(await caller.ask(shot)).toMatchObject({ results: [{ payload: { type: "ValidationError" } }] });
      }
      expect(await caller.ask(opening(caller, caller.reply()))).toMatchObject({ results: [{ status: 0 }] });
    }
    expect(started).toBe(0);
  });

  it("that is sent again opens nothing", async () => {
    const shot = opening(caller, caller.reply());
    expect(await caller.ask(shot)).toMatchObject({ results: [{ status: 0 }] });
    expect(await caller.ask(shot, 300)).toBeUndefined();
  });
});

describe("a note", () => {
  async function opened(from: Attacker): Promise<Opened> {
    const session = await open(from);
    from.fire(note(session, "answer"));
    await expect.poll(() => running.get(from.answer.connection)).toBe(1);
    return session;
  }

  it("of another caller ends nothing, though it knows the session", async () => {
    const session = await opened(caller);
    for (const shot of [
      note(session, "close", { from: other }),
      note(session, "close", { from: other, digest: caller.digest }),
      note(session, "close", {
        from: other,
        digest: caller.digest,
        key: other.keysFor(market.id, caller.digest).request,
      }),
      note(session, "close", { from: other, target: "all" }),
    ]) {
      other.fire(shot);
    }
    await settled(other, caller);
    expect(running.get(caller.answer.connection)).toBe(1);
    caller.fire(note(session, "close"));
    await expect.poll(() => running.get(caller.answer.connection)).toBe(0);
    expect(reasons).toEqual(["CancelledError", "cancelled"]);
  });

  it("that was changed, moved or sent before does nothing", async () => {
    const session = await opened(caller);
    const close = note(session, "close");
    for (let at = 0; at < close.bytes.length; at += 1) {
      const bytes = close.bytes.slice();
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
      caller.fire({ ...close, bytes });
    }
    caller.fire({ ...close, reply: caller.reply() });
    caller.fire({ ...close, subject: controlSubject(deployment, "all") });
    caller.fire(note(session, "close", { key: caller.keysFor(market.id).reply }));
    const state = note(session, "state");
    caller.fire(state);
    await settled(caller);
    expect(running.get(caller.answer.connection)).toBe(1);
    caller.fire(close);
    await expect.poll(() => running.get(caller.answer.connection)).toBe(0);
    const again = await opened(caller);
    caller.fire(close);
    caller.fire(note(again, "close", { counter: 1 }));
    await settled(caller);
    expect(running.get(caller.answer.connection)).toBe(1);
    caller.fire(note(again, "close"));
    await expect.poll(() => running.get(caller.answer.connection)).toBe(0);
  });

  it("that claims to have what was never sent gives no credit, and garbage harms nobody", async () => {
    const session = await opened(caller);
    caller.fire(note(session, "state", { received: Number.MAX_SAFE_INTEGER }));
    const subject = controlSubject(deployment, connection);
    for (const bytes of [[], [1], [1, 3], [1, 3, ...port.random(200)], [1, 16, ...port.random(100)]])
      caller.fire({ subject, reply: caller.reply(), bytes: Uint8Array.from(bytes) });
    await settled(caller);
    expect(running.get(caller.answer.connection)).toBe(1);
    caller.fire(note(session, "close"));
    await expect.poll(() => running.get(caller.answer.connection)).toBe(0);
  });

  it("about a session that is not the sender's is answered like one about none", async () => {
    const session = await opened(caller);
    const heard: unknown[] = [];
    const ask = note(session, "resume", { from: other });
    other.hear(ask.reply, (echo) => heard.push(echo));
    other.fire(ask);
    await settled(other);
    expect(heard.length).toBe(1);
    expect(started).toBe(1);
    caller.fire(note(session, "close"));
  });
});

describe("frames of a session", () => {
  it("count only with the session's own key: a forger can neither add an item nor end it", async () => {
    const client = await trellis.client(trader);
    const stream = client.feed.market.prices();
    expect((await stream.next()).value).toBe(1);
    const parked = stream.next();
    let over: unknown = "open";
    void parked.then(
      () => (over = "item"),
      (error: unknown) => (over = error),
    );
    // Somebody who may publish anywhere in the account, and has seen what went by.
    const lax = trellis.controlPlane.plane.links.app;
    const spied: { subject: string; data: Uint8Array }[] = [];
    const spy = lax.subscribe("_INBOX.*.r.>", {
      callback: (_, { subject, data }) => void spied.push({ subject, data: data.slice() }),
    });
    const second = client.feed.market.prices();
    await second.next();
    await expect.poll(() => spied.some(({ data }) => decodeFeedFrame(port, data) !== undefined)).toBe(true);
    const seen = spied.find(({ data }) => decodeFeedFrame(port, data) !== undefined);
    if (seen === undefined) throw new Error("no frame was seen");
    const { session } = decodeFeedFrame(port, seen.data) ?? { session: new Uint8Array(16) };
    const key = port.macKey(port.random(32));
    const place = { session, subject: seen.subject, key };
    const items = encodeFeedItems(port, { ...place, sequence: 2, payload: "[666]" });
    const end = encodeFeedEnd(port, { ...place, sequence: 2, reason: "completed", payload: "" });
    let later: unknown = "open";
    void second.next().then(
      (item) => (later = item),
      (error: unknown) => (later = error),
    );
    for (const bytes of [items, end, seen.data]) lax.publish(seen.subject, bytes);
    await lax.flush();
    await client.rpc.market.ping().orThrow();
    expect([over, later]).toEqual(["open", "open"]);
    spy.unsubscribe();
    await Promise.all([stream.return(), second.return()]);
  });
});

describe("a consumer that is revoked", () => {
  it("loses its feed at once, and nobody else does", async () => {
    const client = await trellis.client(trader);
    const bystander = await trellis.client(rival);
    const [stream, kept] = [client.feed.market.prices(), bystander.feed.market.prices()];
    await stream.next();
    const [id = ""] = running.keys();
    await kept.next();
    const parked = stream.next();
    parked.catch(() => {});
    await trellis.controlPlane.core["Core.Connections.Kick"]({ id, revoke: true });
    await expect.poll(() => reasons, { timeout: 3_000 }).toEqual(["AuthError", "revoked"]);
    await expect(parked).rejects.toMatchObject({ kind: "call" });
    expect(running.get(id)).toBe(0);
    expect([...running.values()]).toContain(1);
    await kept.return();
  });
});
