import { headers, type NatsConnection } from "@nats-io/transport-node";
import { defineApp, use } from "@trellis/contract";
import {
  EVENT_HEADERS,
  EVENT_STREAM,
  eventContent,
  eventLeaf,
  eventMessageId,
  eventPlace,
  type ResourceBindings,
  replaySubject,
  signEvents,
  writeEventHeaders,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import { eventually, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { billing, deadLetters, managerOf, orders, outstanding, placed, shop } from "../e2e/events-scene.ts";
import { Attacker } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import { intruderService, startScene, startVault } from "./scene.ts";

/** An application that uses the orders' events, and so may know everything about them but publish none. */
const reader = defineApp("evil.reader", { uses: [use(orders)] });

let trellis: TestTrellis;
/** Somebody with the shop's own, honest permissions, and no runtime of ours. */
let insider: Attacker;
let app: Attacker;
let service: Attacker;
let victim: Attacker;
const handled: string[] = [];

beforeAll(async () => {
  trellis = await startScene();
  await startVault(trellis);
  insider = await Attacker.join(trellis, shop);
  app = await Attacker.join(trellis, reader);
  service = await Attacker.join(trellis, intruderService);
  victim = await Attacker.join(trellis, billing);
  await trellis.service(billing, ({ event }) => {
    event.order.placed.listen(({ event: got }) => void handled.push(got.payload.id), { group: "billing" });
  });
});
afterAll(async () => {
  await Promise.all([insider, app, service, victim].map((attacker) => attacker?.close()));
  await trellis?.stop();
});

interface Forgery {
  readonly subject: string;
  readonly body: string;
  readonly headers: Record<string, string>;
}

/** A correctly signed event of somebody who holds these keys. */
function signed(by: Attacker, id: string, signedAt = Date.now()): Forgery {
  const payload = { id, region: "eu" };
  const body = JSON.stringify(payload);
  const place = eventPlace(placed, payload);
  if (!place.ok) throw new Error("no place");
  const { subject } = place;
  const facts = { time: signedAt, requestId: "", traceparent: "", tracestate: "" };
  const content = eventContent(port, { deployment: by.deployment, subject, id, payload: body });
  const [proof = ""] = signEvents(port, {
    leaves: [eventLeaf(port, content, facts)],
    authorization: by.digestText,
    signedAt,
    key: by.keys.session,
  });
  const messageId = eventMessageId(content);
  return { subject, body, headers: writeEventHeaders({ ...facts, id, messageId, proof }) };
}

async function send(nats: NatsConnection, forgery: Forgery): Promise<void> {
  const made = headers();
  for (const [name, value] of Object.entries(forgery.headers)) made.set(name, value);
  await nats.request(forgery.subject, forgery.body, { headers: made, timeout: 5_000 });
}

/** The reason with which an event of this body ended in the dead letters. */
function reasonOf(body: string): Promise<string> {
  return eventually(async () => {
    const found = (await deadLetters(trellis)).find((letter) => letter.body === body);
    if (found === undefined) throw new Error(`no dead letter ${body}`);
    return found.reason;
  });
}

describe("events on the stream", () => {
  it("an honest one of the insider is handled: the forgeries below fail for what they are", async () => {
    await send(insider.nats, signed(insider, "honest"));
    await eventually(() => expect(handled).toContain("honest"));
  });

  it("unsigned, tampered with, moved, or signed by who may not: never handled, dead with the reason", async () => {
    const plain = signed(insider, "unsigned");
    await send(insider.nats, { ...plain, headers: { [EVENT_HEADERS.id]: "unsigned" } });
    expect(await reasonOf(plain.body)).toBe("unsigned");

    const base = signed(insider, "base");
    const changed = base.body.replace("base", "changed");
    await send(insider.nats, { ...base, body: changed, headers: { ...base.headers, "Nats-Msg-Id": "x1" } });
    expect(await reasonOf(changed)).toBe("signature_invalid");

    const moved = signed(insider, "moved");
    await send(insider.nats, { ...moved, subject: moved.subject.replace(/[^.]+$/, "us") });
    expect(await reasonOf(moved.body)).toBe("signature_invalid");

    // Good signatures of deployments that may not publish this event, smuggled in by one that may.
    for (const [name, by] of [
      ["by-service", service],
      ["by-app", app],
    ] as const) {
      const forgery = signed(by, name);
      await send(insider.nats, forgery);
      expect(await reasonOf(forgery.body)).toBe("not_granted");
    }
    const old = signed(insider, "old", Date.now() - 300_000);
    await send(insider.nats, old);
    expect(await reasonOf(old.body)).toBe("untimely");
    expect(handled).toEqual(["honest"]);
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0));
  });

  it("an event copied with its proof is stored as what it is, and its repetition after the window is that event", async () => {
    const twice = signed(insider, "twice");
    await send(insider.nats, twice);
    await send(insider.nats, twice);
    await eventually(() => expect(handled).toContain("twice"));
    expect(handled.filter((id) => id === "twice")).toHaveLength(1);
  });

  it("a publisher that is revoked is shut out, and what others publish in its name is refused", async () => {
    const leaving = await Attacker.join(trellis, shop);
    await send(leaving.nats, signed(leaving, "before"));
    await eventually(() => expect(handled).toContain("before"));
    const { connection } = leaving.answer;
    const core = trellis.controlPlane.core;
    (await core["Core.Connections.Kick"]({ id: connection, revoke: true, reason: "test" })).orThrow();
    await leaving.nats.closed();
    const late = signed(leaving, "late", Date.now() + 5);
    await send(insider.nats, late);
    expect(await reasonOf(late.body)).toBe("revoked");
    expect(handled).not.toContain("late");
  });
});

describe("the broker refuses", () => {
  it("to publish others' events, and to replay them for a consumer", async () => {
    const { subject } = signed(insider, "x");
    const { consumer, deadLetters: letters } = bindingOf(victim);
    for (const attacker of [app, service]) {
      expect(await mayPublish(attacker.nats, subject)).toBe(false);
      expect(await mayPublish(attacker.nats, replaySubject(consumer))).toBe(false);
      expect(await mayPublish(attacker.nats, `${letters}.1`)).toBe(false);
    }
    expect(await mayPublish(insider.nats, replaySubject(consumer))).toBe(false);
    expect(await mayPublish(victim.nats, replaySubject(consumer))).toBe(false);
    expect(await mayPublish(victim.nats, subject)).toBe(false);
  });

  it("to touch a neighbour's consumer: pull, ack, look, make, change, delete, and to read past it", async () => {
    const { stream, consumer, deadLetters: letters } = bindingOf(victim);
    expect(stream).toBe(EVENT_STREAM);
    const secret = letters.split(".")[2] ?? "";
    const manager = await managerOf(trellis);
    const before = await manager.consumers.info(stream, consumer);
    const api = "$JS.API";
    const subjects = [
      `${api}.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
      `${api}.CONSUMER.INFO.${stream}.${consumer}`,
      `${api}.CONSUMER.CREATE.${stream}`,
      `${api}.CONSUMER.CREATE.${stream}.spy`,
      `${api}.CONSUMER.CREATE.${stream}.spy.events.v1.acme_orders@v1.Order_Placed.*`,
      `${api}.CONSUMER.DURABLE.CREATE.${stream}.spy`,
      `${api}.CONSUMER.DELETE.${stream}.${consumer}`,
      `${api}.CONSUMER.PAUSE.${stream}.${consumer}`,
      `${api}.CONSUMER.RESET.${stream}.${consumer}`,
      `${api}.CONSUMER.UNPIN.${stream}.${consumer}`,
      `${api}.CONSUMER.LIST.${stream}`,
      `${api}.CONSUMER.NAMES.${stream}`,
      `${api}.DIRECT.GET.${stream}`,
      `${api}.DIRECT.GET.${stream}.events.v1.acme_orders@v1.Order_Placed.eu`,
      `${api}.DIRECT.GET.DLQ_${secret}`,
      ...["GET", "DELETE"].map((verb) => `${api}.STREAM.MSG.${verb}.${stream}`),
      ...["INFO", "PURGE", "UPDATE", "DELETE", "SNAPSHOT"].flatMap((verb) => [
        `${api}.STREAM.${verb}.${stream}`,
        `${api}.STREAM.${verb}.DLQ_${secret}`,
      ]),
      `${api}.STREAM.LIST`,
      `${api}.STREAM.NAMES`,
      `$JS.ACK.${stream}.${consumer}.1.1.1.1700000000000000000.0`,
      `$JS.ACK._.HASH.${stream}.${consumer}.1.1.1.1700000000000000000.0.x`,
    ];
    for (const attacker of [app, service, insider]) {
      const allowed: string[] = [];
      for (const subject of subjects) if (await mayPublish(attacker.nats, subject)) allowed.push(subject);
      expect(allowed).toEqual([]);
      for (const subject of ["events.>", "events.v1.>", "dlq.>", `${letters}.*`, placed.name])
        expect(await maySubscribe(attacker.nats, subject), subject).toBe(false);
    }
    // Its owner may pull and acknowledge, and no more than that.
    const [pull = "", look = "", ...rest] = subjects;
    expect(await mayPublish(victim.nats, pull, { body: '{"batch":1,"no_wait":true}' })).toBe(true);
    expect(await mayPublish(victim.nats, look)).toBe(true);
    const beyond: string[] = [];
    for (const subject of rest) if (await mayPublish(victim.nats, subject)) beyond.push(subject);
    expect(beyond).toEqual(rest.slice(-2));
    const after = await manager.consumers.info(stream, consumer);
    expect(after.config).toEqual(before.config);
  });

  it("nothing, where it delivers by itself on a subject of the asker's choice: but nobody believes it", async () => {
    const { stream, consumer } = bindingOf(victim);
    const before = handled.length;
    // The answer to a pull goes wherever its reply says, stored streams included.
    const reply = replaySubject(consumer);
    const body = '{"batch":1,"no_wait":true}';
    await mayPublish(victim.nats, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, { body, reply });
    const letter = await eventually(async () => {
      const found = (await deadLetters(trellis)).find(({ subject }) => subject === "");
      if (found === undefined) throw new Error("no dead letter");
      return found;
    });
    expect(letter.reason).toBe("unsigned");
    expect(handled).toHaveLength(before);
  });
});

describe("an ephemeral listener", () => {
  const ask = (by: Attacker, changes: object = {}) =>
    by.ask(
      by.shot("trellis.events@v1", "Events.Listen", {
        slot: 0,
        api: orders.id,
        event: placed.name,
        replay: "all",
        ...changes,
      }),
    );

  it("is made of events of the caller's own contract, under the caller's own names, and of nothing else", async () => {
    expect(await ask(app)).toMatchObject({
      kind: "results",
      results: [{ payload: { stream: EVENT_STREAM } }],
    });
    for (const changes of [
      { api: "acme.secret@v1" },
      { event: "Order.*" },
      { event: ">" },
      { slot: 8 },
      { params: { planet: "mars" } },
      { connection: victim.answer.connection, api: "acme.secret@v1" },
    ]) {
      const echo = await ask(app, changes);
      expect(JSON.stringify(echo), JSON.stringify(changes)).toMatch(/ListenRefused|ValidationError/);
    }
    const manager = await managerOf(trellis);
    const made = await manager.consumers.info(EVENT_STREAM, `${app.answer.connection}_0`);
    expect(made.config.filter_subject).toBe("events.v1.acme_orders@v1.Order_Placed.*");
    const wild = await ask(app, { params: { region: "*.>" } });
    expect(JSON.stringify(wild)).toContain(EVENT_STREAM);
    const filtered = await manager.consumers.info(EVENT_STREAM, `${app.answer.connection}_0`);
    expect(filtered.config.filter_subject).toMatch(/Order_Placed\.=[A-Za-z0-9_-]+$/);
    // A pull of somebody else's is refused; so is what has no events at all to listen to.
    const pull = `$JS.API.CONSUMER.MSG.NEXT.${EVENT_STREAM}.${app.answer.connection}_0`;
    expect(await mayPublish(app.nats, pull, { body: '{"batch":1,"no_wait":true}' })).toBe(true);
    for (const other of [service, victim, insider]) expect(await mayPublish(other.nats, pull)).toBe(false);
    expect(() => service.shot("trellis.events@v1", "Events.Listen", {})).toThrow("is not bound");
  });
});

function bindingOf({ answer }: Attacker) {
  const bindings = JSON.parse(answer.resources.payload) as ResourceBindings;
  const found = bindings.consumers["billing"];
  if (found === undefined) throw new Error("not bound");
  return found;
}
