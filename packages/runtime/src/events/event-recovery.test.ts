import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type ConsumerBinding, eventFilter } from "@trellis/protocol";
import { eventually } from "@trellis/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type EventBed, eventStream, order, startEvents } from "./events.test-kit.ts";

let bed: EventBed | undefined;
afterEach(async () => {
  await bed?.[Symbol.asyncDispose]();
  bed = undefined;
});

async function open(): Promise<EventBed> {
  bed = await startEvents();
  return bed;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function placedWith(handle: (id: string) => unknown, group: "one" | "placed" | "wide" = "placed") {
  return (event: Parameters<Parameters<EventBed["replica"]>[1]>[0]) =>
    event.order.placed.listen(({ event: { payload } }) => handle(payload.id) as never, { group });
}

describe("C69: what is consumed from goes away", () => {
  it("a deleted consumer fails the health within 10 s; made again, the events come again", async () => {
    const events = await open();
    const binding = await events.provision("placed");
    const seen: string[] = [];
    const { surface } = await events.replica(
      { placed: binding },
      placedWith((id) => seen.push(id)),
    );
    const { event } = await events.shop();
    await event.order.placed.publish(order({ id: "before" })).orThrow();
    await eventually(() => expect(seen).toEqual(["before"]));
    expect(surface.health()).toEqual({ status: "ok" });
    const { config } = await events.manager.consumers.info("TRELLIS_EVENTS", binding.consumer);
    await events.manager.consumers.delete("TRELLIS_EVENTS", binding.consumer);
    await eventually(() => expect(surface.health().status).toBe("failed"), { timeout: 10_000 });
    await event.order.placed.publish(order({ id: "meanwhile" })).orThrow();
    await events.manager.consumers.add("TRELLIS_EVENTS", config);
    await eventually(() => expect(seen).toContain("meanwhile"), { timeout: 10_000 });
    expect(surface.health()).toEqual({ status: "ok" });
  }, 30_000);

  it("a stream that is deleted and made again, sequences from 1 on: the new events are handled", async () => {
    const events = await open();
    const binding = await events.provision("placed");
    const seen: string[] = [];
    const { surface } = await events.replica(
      { placed: binding },
      placedWith((id) => seen.push(id)),
    );
    const { event } = await events.shop();
    for (const id of ["a", "b", "c"]) await event.order.placed.publish(order({ id })).orThrow();
    await eventually(() => expect(seen).toHaveLength(3));
    const { config } = await events.manager.consumers.info("TRELLIS_EVENTS", binding.consumer);
    await events.manager.streams.delete("TRELLIS_EVENTS");
    await eventually(() => expect(surface.health().status).toBe("failed"), { timeout: 10_000 });
    await events.manager.streams.add(eventStream);
    await events.manager.consumers.add("TRELLIS_EVENTS", config);
    for (const id of ["d", "e"]) await event.order.placed.publish(order({ id })).orThrow();
    // Signatures are verified side by side: without keys nothing is said about the order.
    await eventually(() => expect([...seen].sort()).toEqual(["a", "b", "c", "d", "e"]), { timeout: 10_000 });
  }, 30_000);

  it("asks with pauses while the consumer is gone", async () => {
    const events = await open();
    const binding = await events.provision("placed");
    const { link } = await events.replica(
      { placed: binding },
      placedWith(() => {}),
    );
    await events.manager.consumers.delete("TRELLIS_EVENTS", binding.consumer);
    let asked = 0;
    const { publish } = link.broker;
    Object.assign(link.broker, {
      publish: (...given: Parameters<typeof publish>) => {
        asked += 1;
        return publish.apply(link.broker, given);
      },
    });
    await vi.waitFor(() => expect(asked).toBeGreaterThan(1), { timeout: 15_000, interval: 50 });
    const before = asked;
    await pause(2_000);
    expect(asked - before).toBeLessThan(15);
  }, 30_000);
});

describe("restarts", () => {
  it("loses no event and handles none after its acknowledgement when nats-server restarts under load", async () => {
    const events = await open();
    const binding = await events.provision("placed", { ack_wait: 2_000_000_000 });
    const handled = new Map<string, number>();
    const { link } = await events.replica(
      { placed: binding },
      placedWith(async (id) => {
        await pause(1);
        handled.set(id, (handled.get(id) ?? 0) + 1);
      }),
    );
    // What was acknowledged while the socket was up is not handled again.
    const { event } = await events.shop("shop1", { timeoutMs: 30_000 });
    const published: string[] = [];
    let running = true;
    const publishers = Array.from({ length: 8 }, async (_, index) => {
      for (let n = 0; running; n += 1) {
        const id = `${index}-${n}`;
        await event.order.placed.publish(order({ id })).orThrow();
        published.push(id);
      }
    });
    for (const kill of [false, true, false]) {
      await pause(400);
      await events.nats.restart({ kill });
      await eventually(() => expect(link.broker.up).toBe(true));
    }
    await pause(400);
    running = false;
    await Promise.all(publishers);
    await eventually(() => expect(published.filter((id) => !handled.has(id))).toEqual([]), {
      timeout: 20_000,
    });
    await eventually(async () => expect(await events.outstanding(binding)).toBe(0), { timeout: 20_000 });
    expect([...handled].filter(([, times]) => times > 1)).toEqual([]);
    expect(await events.letters()).toEqual([]);
    expect(published.length).toBeGreaterThan(50);
  }, 60_000);

  it("redelivers the event of a consumer that is killed in its handler", async () => {
    const events = await open();
    const binding = await events.provision("one", { ack_wait: 1_000_000_000 });
    const { event } = await events.shop();
    const { id } = await event.order.placed.publish(order()).orThrow();
    const child = spawn(
      process.execPath,
      [
        "--conditions=@trellis/source",
        "--import",
        "tsx",
        fileURLToPath(new URL("killed-consumer.test-kit.ts", import.meta.url)),
        events.nats.url,
        "one",
        JSON.stringify(binding),
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    await eventually(() => expect(lines).toContain(`handling ${id}`), { timeout: 15_000 });
    child.kill("SIGKILL");
    await exited;
    const seen: [string, number][] = [];
    await events.replica({ one: binding }, (facade) =>
      facade.order.placed.listen(({ event: got, context }) => void seen.push([got.id, context.attempt]), {
        group: "one",
      }),
    );
    await eventually(() => expect(seen).toEqual([[id, 2]]), { timeout: 5_000 });
    await eventually(async () => expect(await events.outstanding(binding)).toBe(0));
  }, 30_000);

  it("an event whose handler kills every process ends in the dead letters", async () => {
    const events = await open();
    const binding = await events.provision("one", { ack_wait: 100_000_000 });
    const { event } = await events.shop();
    await event.order.placed.publish(order()).orThrow();
    // Deliveries of which nothing is heard, as those to processes that died.
    for (let delivery = 0; delivery < 8; delivery += 1) {
      await events.admin.request(
        `$JS.API.CONSUMER.MSG.NEXT.TRELLIS_EVENTS.${binding.consumer}`,
        JSON.stringify({ batch: 1, expires: 3_000_000_000 }),
        { timeout: 4_000, noMux: true },
      );
    }
    const seen: string[] = [];
    await events.replica(
      { one: { ...binding, ackWaitMs: 100 } },
      placedWith((id) => seen.push(id), "one"),
    );
    const [letter] = await events.lettersOnce(1);
    expect(letter).toMatchObject({ reason: "crashed", attempts: 9 });
    expect(seen).toEqual([]);
  }, 30_000);
});

describe("C70, C100: consumers side by side, and changed", () => {
  it("C100: groups of one event, and of overlapping ones, get every event once each", async () => {
    const events = await open();
    const bindings = { placed: await events.provision("placed"), both: await events.provision("both") };
    const seen: Record<string, string[]> = { placed: [], both: [] };
    await events.replica(bindings, (event) => {
      event.order.placed.listen(({ event: { id } }) => void seen["placed"]?.push(id), { group: "placed" });
      event.order.placed.listen(({ event: { id } }) => void seen["both"]?.push(id), { group: "both" });
      event.order.shipped.listen(({ event: { id } }) => void seen["both"]?.push(id), { group: "both" });
    });
    const { event } = await events.shop();
    for (let n = 0; n < 20; n += 1) {
      await event.order.placed.publish(order({ region: `r${n % 3}` })).orThrow();
      await event.order.shipped.publish(order()).orThrow();
    }
    await eventually(() => expect([seen["placed"]?.length, seen["both"]?.length]).toEqual([20, 40]));
    for (const ids of Object.values(seen)) expect(new Set(ids).size).toBe(ids.length);
  });

  it("C70: an older replica leaves the events of a widened consumer to the newer one", async () => {
    const events = await open();
    const binding = await events.provision("both");
    const filters = ["Order.Placed"].map((action) =>
      eventFilter({ api: "acme.orders@v1", action, params: [undefined] }),
    );
    await events.manager.consumers.update("TRELLIS_EVENTS", binding.consumer, { filter_subjects: filters });
    const seen: string[] = [];
    // The older contract has only this event in its consumer.
    await events.replica(
      { placed: binding },
      placedWith(() => {}),
    );
    const { config } = await events.manager.consumers.info("TRELLIS_EVENTS", binding.consumer);
    await events.manager.consumers.update("TRELLIS_EVENTS", binding.consumer, {
      ...config,
      filter_subjects: [
        ...filters,
        eventFilter({ api: "acme.orders@v1", action: "Order.Shipped", params: [undefined] }),
      ],
    });
    const { event } = await events.shop();
    await event.order.shipped.publish(order({ id: "new" })).orThrow();
    await pause(300);
    await events.replica({ both: binding }, (facade) => {
      facade.order.placed.listen(() => {}, { group: "both" });
      facade.order.shipped.listen(({ event: { payload } }) => void seen.push(payload.id), { group: "both" });
    });
    await eventually(() => expect(seen).toEqual(["new"]), { timeout: 15_000 });
    expect(await events.letters()).toEqual([]);
  }, 30_000);

  it("an operator's replay reaches the one consumer, and is checked as on the first day", async () => {
    const events = await open();
    const bindings = { placed: await events.provision("placed"), one: await events.provision("one") };
    let failing = true;
    const seen: Record<string, number> = { placed: 0, one: 0 };
    await events.replica(bindings, (facade) => {
      facade.order.placed.listen(() => void (seen["one"] = (seen["one"] ?? 0) + 1), { group: "one" });
      facade.order.placed.listen(
        () => {
          if (failing) throw new Error("not now");
          seen["placed"] = (seen["placed"] ?? 0) + 1;
        },
        { group: "placed" },
      );
    });
    const { event } = await events.shop();
    await event.order.placed.publish(order()).orThrow();
    const [letter] = await events.lettersOnce(1);
    if (letter === undefined) throw new Error("no letter");
    failing = false;
    const message = await events.manager.direct.getMessage("DLQ_test", { seq: 1 });
    const replay = async (changes: Readonly<Record<string, string>>) =>
      events.forge(`events.v1.replay.${bindings.placed.consumer}`, letter.body, {
        ...Object.fromEntries([...(message?.header ?? [])].map(([name, [value = ""]]) => [name, value])),
        "Nats-Expected-Last-Subject-Sequence": "",
        "Trellis-Replay-Subject": letter.subject,
        "Trellis-Replay-Stored": String(letter.storedAt),
        "Trellis-Replay-Message-Id": letter.messageId,
        ...changes,
      });
    await replay({});
    await eventually(() => expect(seen).toEqual({ placed: 1, one: 1 }));
    await replay({ "Trellis-Replay-Subject": letter.subject.replace(/eu$/, "us") });
    const [, second] = await events.lettersOnce(2);
    expect(second).toMatchObject({ reason: "signature_invalid" });
    expect(seen).toEqual({ placed: 1, one: 1 });
  });
});

describe("load", () => {
  it("C71, C72: memory is flat over many events, and a slow handler holds a bounded number of them", async () => {
    const events = await open();
    const total = process.env["TRELLIS_SOAK"] === "1" ? 1_000_000 : 100_000;
    const binding: ConsumerBinding = await events.provision("wide", { max_ack_pending: 20_000 });
    let handled = 0;
    let slow = true;
    const { link } = await events.replica(
      { wide: binding },
      placedWith(async () => {
        if (slow) await pause(50);
        handled += 1;
      }, "wide"),
      { traced: false },
    );
    const { event } = await events.shop();
    const publish = async (count: number) => {
      let left = count;
      const publisher = async () => {
        while (left-- > 0) await event.order.placed.publish(order({ pad: "x".repeat(200) })).orThrow();
      };
      await Promise.all(Array.from({ length: 256 }, publisher));
    };
    await publish(5_000);
    // Handlers of 50 ms: the rest waits in the stream, not here.
    const { num_ack_pending } = await events.manager.consumers.info("TRELLIS_EVENTS", binding.consumer);
    expect(num_ack_pending).toBeLessThanOrEqual(1_500);
    slow = false;
    await eventually(() => expect(handled).toBe(5_000), { timeout: 20_000 });
    await publish(20_000);
    const heap = async () => {
      await eventually(async () => expect(await events.outstanding(binding)).toBe(0), { timeout: 30_000 });
      globalThis.gc?.();
      return process.memoryUsage();
    };
    const before = await heap();
    await publish(total);
    const after = await heap();
    expect(handled).toBe(25_000 + total);
    expect(link.requests.size).toBe(0);
    if (globalThis.gc !== undefined) expect((after.heapUsed - before.heapUsed) / 2 ** 20).toBeLessThan(16);
    expect((after.rss - before.rss) / 2 ** 20).toBeLessThan(96);
  }, 180_000);

  it("C81: times are instants of the broker to the millisecond, and sequences are whole", async () => {
    const events = await open();
    const binding = await events.provision("placed");
    const seen: Date[] = [];
    await events.replica({ placed: binding }, (facade) =>
      facade.order.placed.listen(({ event }) => void seen.push(event.storedAt), { group: "placed" }),
    );
    const { event } = await events.shop();
    await event.order.placed.publish(order()).orThrow();
    await eventually(() => expect(seen).toHaveLength(1));
    const message = await events.manager.direct.getMessage("TRELLIS_EVENTS", { seq: 1 });
    expect(seen[0]?.getTime()).toBe(Math.floor((message?.time ?? new Date(0)).getTime()));
  });
});
