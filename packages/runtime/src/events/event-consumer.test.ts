import { toBase64Url } from "@trellis/protocol";
import { err } from "@trellis/result";
import { eventually } from "@trellis/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { EventRequest } from "./event-handler.ts";
import { type EventBed, type Letter, type Outer, order, startEvents } from "./events.test-kit.ts";

type Placed = EventRequest<{ id: string; region: string; n?: number }, Outer>;

let bed: EventBed;
beforeAll(async () => {
  bed = await startEvents();
});
afterAll(() => bed[Symbol.asyncDispose]());
afterEach(() => bed.reset());

/** A replica with one handler of placed orders in consumer `one` or another, and what it was given. */
async function replica(handler: (request: Placed) => unknown = () => {}, alias: "one" | "placed" = "placed") {
  const binding = await bed.provision(alias);
  const seen: Placed[] = [];
  const handle = (request: Placed) => {
    seen.push(request);
    return handler(request) as never;
  };
  const running = await bed.replica({ [alias]: binding }, (event) =>
    event.order.placed.listen(handle, { group: alias }),
  );
  return { ...running, binding, seen };
}

describe("handling", () => {
  it("gives the event, its publisher and the request that it came from", async () => {
    const { seen, binding } = await replica();
    const { event, link } = await bed.shop();
    const payload = order({ region: "a.b" });
    const { id } = await event.order.placed.publish(payload).orThrow();
    await eventually(() => expect(seen).toHaveLength(1));
    const [{ event: got, context, client }] = seen as [Placed];
    expect(got).toMatchObject({ id, name: "Order.Placed", payload, params: { region: "a.b" } });
    expect(got.publisher).toMatchObject({ deployment: "shop1", connectionId: link.session.connection });
    expect(Math.abs(got.time.getTime() - Date.now())).toBeLessThan(5_000);
    expect(Math.abs(got.storedAt.getTime() - Date.now())).toBeLessThan(5_000);
    expect(context.attempt).toBe(1);
    expect(context.requestId).toMatch(/^[0-9a-f]{32}$/);
    expect(client.origin).toBe(context);
    await eventually(async () => expect(await bed.outstanding(binding)).toBe(0));
  });

  it("shares a consumer's events among replicas, each event once", async () => {
    const binding = await bed.provision("one");
    const counts = [0, 0];
    const ids = new Set<string>();
    for (const index of [0, 1]) {
      await bed.replica({ one: binding }, (event) =>
        event.order.placed.listen(
          async ({ event: { id } }) => {
            counts[index] = (counts[index] ?? 0) + 1;
            ids.add(id);
            await new Promise((resolve) => setTimeout(resolve, 2));
          },
          { group: "one" },
        ),
      );
    }
    const { event } = await bed.shop();
    await Promise.all(Array.from({ length: 400 }, () => event.order.placed.publish(order()).orThrow()));
    await eventually(() => expect(ids.size).toBe(400), { timeout: 10_000 });
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(400);
    expect(Math.min(...counts)).toBeGreaterThan(40);
    await eventually(async () => expect(await bed.outstanding(binding)).toBe(0));
  });

  it("never runs more handlers than the consumer's concurrency, and keeps long ones alive", async () => {
    const binding = await bed.provision("three", { ack_wait: 300_000_000 });
    let running = 0;
    let most = 0;
    const attempts: number[] = [];
    await bed.replica({ three: binding }, (event) =>
      event.order.placed.listen(
        async ({ context }) => {
          attempts.push(context.attempt);
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, 1_000));
          running -= 1;
        },
        { group: "three" },
      ),
    );
    const { event } = await bed.shop();
    await Promise.all(Array.from({ length: 6 }, () => event.order.placed.publish(order()).orThrow()));
    await eventually(async () => expect(await bed.outstanding(binding)).toBe(0), { timeout: 6_000 });
    expect(most).toBe(3);
    expect(attempts).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it("C80: what a handler gives back is ignored, and nobody is answered", async () => {
    const { seen } = await replica(() => ({ answer: "yes" }));
    const { event } = await bed.shop();
    const replies: unknown[] = [];
    bed.admin.subscribe("replies.>", { callback: (_error, message) => void replies.push(message.json()) });
    const prepared = event.order.placed.prepare(order()).orThrow();
    await event.order.placed.publish(order()).orThrow();
    bed.admin.publish(prepared.subject, prepared.payload, { reply: "replies.1" });
    await bed.admin.flush();
    await eventually(() => expect(seen).toHaveLength(1));
    await bed.lettersOnce(1);
    // The stream's own word that it stored the message is the only one.
    expect(replies).toEqual([expect.objectContaining({ stream: "TRELLIS_EVENTS" })]);
  });
});

describe("failures", () => {
  it("C73: retries with pauses, dead-letters what never succeeds, and holds up nobody", async () => {
    const deliveries = new Map<number, number[]>();
    const done: number[] = [];
    const { binding } = await replica(async ({ event: { payload }, context }) => {
      const n = payload.n ?? 0;
      deliveries.set(n, [...(deliveries.get(n) ?? []), performance.now()]);
      if (n === 5 && context.attempt < 3) throw new Error("not yet");
      if (n === 7) return err(new Error("never"));
      if (n === 8 && context.attempt === 1) {
        await new Promise((resolve) => setTimeout(resolve, 300));
        throw new Error("late");
      }
      done.push(n);
      return undefined;
    }, "one");
    const { event } = await bed.shop();
    for (let n = 1; n <= 10; n += 1) await event.order.placed.publish(order({ n })).orThrow();
    const [letter] = (await bed.lettersOnce(1)) as [Letter];
    await eventually(async () => expect(await bed.outstanding(binding)).toBe(0));
    expect([...done].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 8, 9, 10]);
    expect(letter).toMatchObject({
      reason: "exhausted",
      attempts: 3,
      error: { type: "Error", message: "never" },
    });
    expect(JSON.parse(letter.body)).toMatchObject({ n: 7 });
    for (const n of [5, 7]) {
      const times = deliveries.get(n) ?? [];
      expect(times).toHaveLength(3);
      for (const [index, time] of times.entries()) {
        if (index > 0) expect(time - (times[index - 1] ?? 0)).toBeGreaterThan(30);
      }
    }
    // Those behind the failing ones came before their retries.
    expect(done.indexOf(6)).toBeLessThan(done.indexOf(5));
    expect(await bed.letters()).toHaveLength(1);
  });

  it("dead-letters what is forged, tampered with, unsigned, misfit or not allowed, with the reason", async () => {
    const { seen, binding } = await replica();
    const { event } = await bed.shop();
    const prepared = event.order.placed.prepare(order()).orThrow();
    await event.order.placed.publish(order()).orThrow();
    const { state } = await bed.manager.streams.info("TRELLIS_EVENTS");
    const good = await bed.manager.direct.getMessage("TRELLIS_EVENTS", { seq: state.last_seq });
    if (good === null) throw new Error("no event");
    const headers = Object.fromEntries([...good.header].map(([name, [value = ""]]) => [name, value]));
    const { subject } = good;
    const again = (changes: Readonly<Record<string, string>>) => ({
      ...headers,
      "Nats-Msg-Id": `other-${Math.random()}`,
      ...changes,
    });
    await bed.forge(subject, prepared.payload);
    await bed.forge(subject, `${good.string()} `, again({}));
    await bed.forge(subject, good.string(), again({ "Trellis-Event-Time": "1" }));
    await bed.forge(subject, good.string(), again({ "Trellis-Event-Id": "" }));
    // The event itself, once more: only its own message id would be taken for a duplicate.
    await bed.forge(subject, good.string(), again({}));
    const proof = headers["Trellis-Event-Proof"] ?? "";
    const unknown = proof.replace(/^1 \S+/, `1 ${toBase64Url(new Uint8Array(32).fill(9))}`);
    await bed.forge(subject, good.string(), again({ "Trellis-Event-Proof": unknown }));
    const letters = await bed.lettersOnce(6);
    expect(letters.map(({ reason }) => reason).sort()).toEqual(
      [
        "unsigned",
        "signature_invalid",
        "signature_invalid",
        "malformed",
        "message_id_invalid",
        "unknown_authorization",
      ].sort(),
    );
    await eventually(async () => expect(await bed.outstanding(binding)).toBe(0));
    expect(seen).toHaveLength(1);
  });

  it("dead-letters the events of who may not publish them, or whose time is over", async () => {
    const { seen } = await replica();
    const cases = {
      not_granted: { owns: [] },
      expired: { changes: { expiresAt: Date.now() - 200_000 } },
      not_yet_valid: { changes: { notBefore: Date.now() + 200_000 } },
      untimely: {},
    };
    for (const [reason, options] of Object.entries(cases)) {
      const { event, link } = await bed.shop(`shop-${reason}`, options);
      if (reason === "not_granted") {
        link.session = { ...link.session, grants: (await bed.link("x", { owns: [] })).session.grants };
        const { grants } = (await bed.shop(`shop-${reason}`)).link.session;
        link.session = { ...link.session, grants };
      }
      if (reason === "untimely")
        link.clock.adjust(Date.now() - 200_000, performance.now(), performance.now());
      await event.order.placed.publish(order()).orThrow();
    }
    const letters = await bed.lettersOnce(4);
    expect(letters.map(({ reason }) => reason).sort()).toEqual(Object.keys(cases).sort());
    expect(seen).toHaveLength(0);
  });

  it("refuses what was published after a revocation, and takes what was published before", async () => {
    const { seen, link: consumer } = await replica();
    const { event, link } = await bed.shop("shop-revoked");
    await event.order.placed.publish(order({ n: 1 })).orThrow();
    await eventually(() => expect(seen).toHaveLength(1));
    consumer.revocations.add({
      version: 1,
      issuer: link.session.authorization.issuer,
      subject: { kind: "connection", id: link.session.connection },
      at: Date.now() + 400,
      reason: "test",
    });
    await event.order.placed.publish(order({ n: 2 })).orThrow();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await event.order.placed.publish(order({ n: 3 })).orThrow();
    const [letter] = (await bed.lettersOnce(1)) as [Letter];
    expect(letter.reason).toBe("revoked");
    expect(JSON.parse(letter.body)).toMatchObject({ n: 3 });
    expect(seen.map(({ event: { payload } }) => payload.n)).toEqual([1, 2]);
  });

  it("takes the event of an authorization that has expired since", async () => {
    const { event } = await bed.shop("shop-past", { changes: { expiresAt: Date.now() + 60_000 } });
    const binding = await bed.provision("one");
    await event.order.placed.publish(order()).orThrow();
    const seen: unknown[] = [];
    const running = await bed.replica({ one: binding }, () => {});
    running.link.clock.adjust(Date.now() + 7_200_000, performance.now(), performance.now());
    const { listening } = await import("./events.test-kit.ts");
    const surface = listening(running.link, { one: binding });
    const facade = surface.facade as {
      order: { placed: { listen(h: (r: unknown) => void, o: object): void } };
    };
    facade.order.placed.listen((request) => void seen.push(request), { group: "one" });
    surface.start();
    await eventually(() => expect(seen).toHaveLength(1));
    const { Deadline } = await import("../lifecycle/deadline.ts");
    await surface.stop(Deadline.after(100));
  });

  it("dead-letters a payload that does not fit the consumer's schema", async () => {
    const { seen } = await replica();
    const { publishPrepared, event } = await bed.shop();
    const prepared = event.order.placed.prepare(order()).orThrow();
    await publishPrepared({ ...prepared, payload: '{"id":7,"region":"eu"}' }).orThrow();
    const [letter] = (await bed.lettersOnce(1)) as [Letter];
    expect(letter).toMatchObject({ reason: "schema_mismatch", eventId: prepared.id });
    expect(letter.error.message).toContain("/id");
    expect(seen).toHaveLength(0);
  });

  it("waits when the publisher's authorization cannot be looked up", async () => {
    const { event, link } = await bed.shop("shop-late");
    const name = `ctl.get.authorization.${link.session.digestText}`;
    const text = bed.store.get(name) ?? "";
    bed.store.set(name, "no answer");
    const { seen, link: consumer } = await replica();
    const { last } = consumer.directGet;
    let failures = 0;
    Object.assign(consumer.directGet, {
      last: (subject: string) => {
        if (subject !== name || failures > 0) return last.call(consumer.directGet, subject);
        failures += 1;
        bed.store.set(name, text);
        return Promise.reject(new Error("the store is down"));
      },
    });
    await event.order.placed.publish(order()).orThrow();
    await eventually(() => expect(seen).toHaveLength(1), { timeout: 5_000 });
    expect(failures).toBe(1);
    expect(await bed.letters()).toHaveLength(0);
  });

  it("writes a dead letter once, also when the process dies before it settles the event", async () => {
    const binding = await bed.provision("once", { ack_wait: 500_000_000 });
    const { event } = await bed.shop();
    await event.order.placed.publish(order()).orThrow();
    const seen: number[] = [];
    const listen = async () =>
      bed.replica({ once: binding }, (facade) =>
        facade.order.placed.listen(
          ({ context }) => {
            seen.push(context.attempt);
            throw new Error("always");
          },
          { group: "once" },
        ),
      );
    const first = await listen();
    // The word that settles it is lost, as in a crash.
    const { publish } = first.link.broker;
    Object.assign(first.link.broker, {
      publish: (subject: string, ...rest: [Uint8Array, string?]) =>
        subject.startsWith("$JS.ACK") ? true : publish.call(first.link.broker, subject, ...rest),
    });
    await bed.lettersOnce(1);
    await first.link.close();
    await listen();
    await eventually(async () => expect(await bed.outstanding(binding)).toBe(0), { timeout: 5_000 });
    expect(await bed.letters()).toHaveLength(1);
    expect(seen.length).toBeGreaterThanOrEqual(2);
  });

  it("dead-letters an event that fits only without the reason beside it", async () => {
    const { event } = await bed.shop();
    await replica(() => err(new Error("x".repeat(1_000))));
    const pad = "x".repeat(1_048_576 - 2_048 - 60);
    const { id } = await event.order.placed.publish(order({ pad })).orThrow();
    const [letter] = (await bed.lettersOnce(1)) as [Letter];
    expect(letter).toMatchObject({ eventId: id, body: "", reason: "exhausted" });
  });
});

describe("stopping", () => {
  it("lets handlers end, gives back what has not begun, and acknowledges nothing else", async () => {
    const binding = await bed.provision("one", { ack_wait: 60_000_000_000 });
    const begun: string[] = [];
    const ended: string[] = [];
    const listen = () =>
      bed.replica({ one: binding }, (event) =>
        event.order.placed.listen(
          async ({ event: { id } }) => {
            begun.push(id);
            await new Promise((resolve) => setTimeout(resolve, 150));
            ended.push(id);
          },
          { group: "one" },
        ),
      );
    const first = await listen();
    const { event } = await bed.shop();
    await Promise.all(Array.from({ length: 5 }, () => event.order.placed.publish(order()).orThrow()));
    await eventually(() => expect(begun).toHaveLength(1));
    await first.stop();
    expect(ended).toEqual(begun);
    expect(begun).toHaveLength(1);
    await first.link.close();
    await listen();
    await eventually(() => expect(new Set(ended).size).toBe(5), { timeout: 4_000 });
    expect(ended).toHaveLength(5);
  });

  it("aborts handlers that do not end, and the event comes again", async () => {
    const binding = await bed.provision("one", { ack_wait: 500_000_000 });
    let aborted = 0;
    const attempts: number[] = [];
    const listen = (hang: boolean) =>
      bed.replica({ one: binding }, (event) =>
        event.order.placed.listen(
          ({ context }) => {
            attempts.push(context.attempt);
            if (!hang) return;
            return new Promise((_, reject) => {
              context.signal.addEventListener("abort", () => {
                aborted += 1;
                reject(context.signal.reason as Error);
              });
            });
          },
          { group: "one" },
        ),
      );
    const first = await listen(true);
    const { event } = await bed.shop();
    await event.order.placed.publish(order()).orThrow();
    await eventually(() => expect(attempts).toEqual([1]));
    await first.stop(400);
    expect(aborted).toBe(1);
    await first.link.close();
    await listen(false);
    await eventually(() => expect(attempts).toEqual([1, 2]));
    expect(await bed.letters()).toHaveLength(0);
  });
});

describe("registering", () => {
  it("refuses what could not work, saying what to write", async () => {
    const binding = await bed.provision("one");
    const nothing = () => {};
    await bed
      .replica({ one: binding }, (event) => {
        expect(() => event.order.placed.listen(nothing)).toThrow(
          /Which consumer handles Order.Placed\? Pass \{ group \}/,
        );
        expect(() => event.noted.noted.listen(nothing)).toThrow(/Declare one in the contract/);
        expect(() => event.order.shipped.listen(nothing, { group: "one" })).toThrow(
          /no consumer "one" of Order.Shipped/,
        );
        event.order.placed.listen(nothing, { group: "one" });
        expect(() => event.order.placed.listen(nothing, { group: "one" })).toThrow(/already/);
        event.order.tagged.listen(nothing);
      })
      .catch((error: unknown) => expect(error).toMatchObject({ code: "trellis.bootstrap.binding_missing" }));
    await expect(
      bed.replica({ both: binding }, (event) => event.order.placed.listen(nothing, { group: "both" })),
    ).rejects.toThrow(/no handler for Order.Shipped/);
  });
});
