import { isPreparedEvent, readEventHeaders, ValidationError } from "@trellis/protocol";
import { eventually, startFaultProxy } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EventBed, order, startEvents } from "./events.test-kit.ts";

let bed: EventBed;
beforeAll(async () => {
  bed = await startEvents();
});
afterAll(() => bed[Symbol.asyncDispose]());

async function lastStored() {
  const { state } = await bed.manager.streams.info("TRELLIS_EVENTS");
  const message = await bed.manager.direct.getMessage("TRELLIS_EVENTS", { seq: state.last_seq });
  if (message === null) throw new Error("nothing is stored");
  return message;
}

describe("preparing", () => {
  it("gives plain JSON that is published later with the same bytes", async () => {
    const { event, publishPrepared } = await bed.shop();
    const payload = order({ n: -0 });
    const prepared = event.order.placed.prepare(payload).orThrow();
    const kept: unknown = JSON.parse(JSON.stringify(prepared));
    if (!isPreparedEvent(kept)) throw new Error("it does not read back");
    expect(kept).toEqual(prepared);
    expect(await publishPrepared(kept).orThrow()).toEqual({ id: prepared.id, duplicate: false });
    const stored = await lastStored();
    expect(stored.subject).toBe("events.v1.acme_orders@v1.Order_Placed.eu");
    expect(stored.string()).toBe(prepared.payload);
    expect(prepared.payload).toContain('"n":-0');
    const read = readEventHeaders((name) => stored.header.get(name));
    expect(read).toMatchObject({ ok: true, stamp: { id: prepared.id, time: prepared.time } });
  });

  it("refuses what does not fit, naming the place", async () => {
    const { event } = await bed.shop();
    const bad = { id: 7, region: "eu" };
    const refused = event.order.placed.prepare(bad as never);
    expect(refused.isErr() && refused.error).toBeInstanceOf(ValidationError);
    expect(refused.isErr() && refused.error.errors[0]?.path).toBe("/id");
    const large = event.order.placed.prepare(order({ pad: "x".repeat(1_048_576) }));
    expect(large.isErr() && large.error).toBeInstanceOf(ValidationError);
    const id = event.order.placed.prepare(order(), { id: "a\r\nb" });
    expect(id.isErr() && id.error).toBeInstanceOf(ValidationError);
  });

  it("refuses to publish what is not an event of ours", async () => {
    const { event, publishPrepared } = await bed.shop();
    const prepared = event.order.placed.prepare(order()).orThrow();
    for (const change of [
      { name: "Order.Unknown" },
      { subject: "events.v1.acme_orders@v1.Order_Placed" },
      { subject: "$JS.API.STREAM.DELETE.TRELLIS_EVENTS" },
      { subject: "events.v1.acme_orders@v1.Order_Placed.*" },
    ]) {
      const done = await publishPrepared({ ...prepared, ...change });
      expect(done.isErr() && done.error.type).toBe("ValidationError");
    }
  });
});

describe("publishing", () => {
  it("signs once for the events of a turn", async () => {
    const { event, link } = await bed.shop();
    let signatures = 0;
    const { sign } = link.keys.session;
    Object.assign(link.keys.session, {
      sign: (data: Uint8Array) => {
        signatures += 1;
        return sign(data);
      },
    });
    await Promise.all(Array.from({ length: 200 }, () => event.order.placed.publish(order()).orThrow()));
    expect(signatures).toBeLessThanOrEqual(8);
  });

  it("C82: parameters of 0, false and '' reach the subject; NaN is refused by its pointer", async () => {
    const { event } = await bed.shop();
    const { tagged } = event.order;
    await tagged.publish({ tenant: 0, flag: false }).orThrow();
    expect((await lastStored()).subject).toBe("events.v1.acme_orders@v1.Order_Tagged.0.false");
    await tagged.publish({ tenant: -0, flag: "" }).orThrow();
    expect((await lastStored()).subject).toBe("events.v1.acme_orders@v1.Order_Tagged.0.=");
    for (const tenant of [1e21, 2 ** 53]) {
      const refused = await tagged.publish({ tenant, flag: true });
      expect(refused.isErr() && refused.error).toMatchObject({ errors: [{ path: "/tenant" }] });
    }
  });

  it("C17: no text of a user adds a token, and the connection survives all of them", async () => {
    const { event } = await bed.shop();
    for (const region of ["", ".", "a.b", "*", ">", "a b", "x\r\nPUB evil 0\r\n\r\n", "\0", "%2E", "é"]) {
      await event.order.placed.publish(order({ region })).orThrow();
      expect((await lastStored()).subject.split(".")).toHaveLength(5);
    }
    const long = await event.order.placed.publish(order({ region: "x".repeat(4_096) }));
    expect(long.isErr() && long.error).toMatchObject({ errors: [{ path: "/region" }] });
  });

  it("C40: one id of an application's own, in other services, events, subjects and payloads: all are stored", async () => {
    const [one, two] = [await bed.shop("shop1"), await bed.shop("shop2")];
    const before = await bed.stored();
    const options = { id: "1" };
    const payload = { id: "same", region: "eu" };
    const results = [
      await one.event.order.placed.publish(payload, options).orThrow(),
      await two.event.order.placed.publish(payload, options).orThrow(),
      await one.event.order.shipped.publish(payload, options).orThrow(),
      await one.event.order.placed.publish({ ...payload, region: "us" }, options).orThrow(),
      await one.event.order.placed.publish({ ...payload, id: "other" }, options).orThrow(),
    ];
    expect(results.map(({ duplicate }) => duplicate)).toEqual([false, false, false, false, false]);
    expect(await bed.stored()).toBe(before + 5);
    expect(await one.event.order.placed.publish(payload, options).orThrow()).toEqual({
      id: "1",
      duplicate: true,
    });
    expect(await bed.stored()).toBe(before + 5);
  });

  it("C40: another replica of the service publishes a prepared event again: it is stored once", async () => {
    const [one, two] = [await bed.shop("shop1"), await bed.shop("shop1")];
    const prepared = one.event.order.placed.prepare(order()).orThrow();
    expect((await one.publishPrepared(prepared).orThrow()).duplicate).toBe(false);
    expect((await two.publishPrepared(prepared).orThrow()).duplicate).toBe(true);
  });

  it("refuses without a grant, at once", async () => {
    const { event } = await bed.shop("stranger", { owns: [] });
    const refused = await event.order.placed.publish(order());
    expect(refused.isErr() && refused.error).toMatchObject({ type: "AuthError", reason: "not_granted" });
  });

  it("C39: acks that are lost with the socket make no second event", async () => {
    await using proxy = await startFaultProxy({ target: bed.nats.url });
    const { event } = await bed.shop("shop1", { servers: `nats://${proxy.address}` });
    const before = await bed.stored();
    const publishes = Array.from({ length: 300 }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index));
      return event.order.placed.publish(order()).orThrow();
    });
    const cuts = setInterval(() => proxy.cut(), 60);
    await Promise.all(publishes).finally(() => clearInterval(cuts));
    expect(await bed.stored()).toBe(before + 300);
  });

  it("C39: an ack that never comes is an unknown outcome; what was never sent says so; the retry adds nothing", async () => {
    await using proxy = await startFaultProxy({ target: bed.nats.url });
    const { event, publishPrepared, link } = await bed.shop("shop1", { servers: `nats://${proxy.address}` });
    await event.order.placed.publish(order()).orThrow();
    const before = await bed.stored();
    const prepared = event.order.placed.prepare(order()).orThrow();
    proxy.delay(400);
    const lost = await publishPrepared(prepared, { timeout: 500 });
    expect(lost.isErr() && lost.error).toMatchObject({ code: "trellis.event.outcome_unknown" });
    proxy.delay(0);
    await eventually(async () => expect(await bed.stored()).toBe(before + 1));
    expect((await publishPrepared(prepared).orThrow()).duplicate).toBe(true);
    await proxy.refuse(true);
    proxy.cut();
    await eventually(() => expect(link.broker.up).toBe(false));
    const unsent = await event.order.placed.publish(order(), { timeout: 200 });
    expect(unsent.isErr() && unsent.error).toMatchObject({ code: "trellis.event.not_sent" });
    expect(await bed.stored()).toBe(before + 1);
  });

  it("waits for the socket within its deadline, and is signed when it goes", async () => {
    await using proxy = await startFaultProxy({ target: bed.nats.url });
    const { event, link } = await bed.shop("shop1", { servers: `nats://${proxy.address}` });
    await proxy.refuse(true);
    proxy.cut();
    await eventually(() => expect(link.broker.up).toBe(false));
    const publishing = event.order.placed.publish(order(), { timeout: 5_000 });
    await proxy.refuse(false);
    expect((await publishing.orThrow()).duplicate).toBe(false);
  });
});

it("C39: without a stream the error is clear and comes within the one deadline", async () => {
  await using lone = await startEvents();
  const { event } = await lone.shop("shop1");
  await lone.manager.streams.delete("TRELLIS_EVENTS");
  const started = performance.now();
  const refused = await event.order.placed.publish(order(), { timeout: 1_500 });
  expect(refused.isErr() && refused.error).toMatchObject({ code: "trellis.jetstream.no_stream" });
  expect(performance.now() - started).toBeLessThan(1_900);
});
