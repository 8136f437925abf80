import { createServer } from "node:net";
import { eventually, startFaultProxy, startTrellis, type TestTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { billing, deadLetters, outstanding, shop, storedEvents } from "../e2e/events-scene.ts";
import { type Child, startChild } from "./child.ts";
import { count, pause, watchUnhandled } from "./kit.ts";

const order = (id: string) => ({ id, region: "eu" });

/** Ids of the events that replicas said they are done with, with how often. */
function doneBy(children: readonly Child[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const line of children.flatMap(({ lines }) => lines)) {
    if (!line.startsWith("done ")) continue;
    const id = line.slice("done ".length);
    times.set(id, (times.get(id) ?? 0) + 1);
  }
  return times;
}

async function startShop(trellis: TestTrellis) {
  return (await trellis.service(shop, () => {})).client.event.order.placed;
}

describe("the broker", () => {
  it("restarts under load: no event is lost, none is handled after it was acknowledged, listeners resume", async () => {
    using unhandled = watchUnhandled();
    await using trellis = await startTrellis();
    const placed = await startShop(trellis);
    await using one = startChild(trellis, "event-consumer");
    await using two = startChild(trellis, "event-consumer");
    await Promise.all([one.line("ready"), two.line("ready")]);
    const published: string[] = [];
    let running = true;
    const publishers = Array.from({ length: 8 }, async (_, index) => {
      for (let n = 0; running; n += 1) {
        const id = `${index}-${n}`;
        await placed.publish(order(id)).orThrow();
        published.push(id);
      }
    });
    for (let round = 0; round < count(12, 3); round += 1) {
      const before = published.length;
      await eventually(() => published.length > before + 50, { timeout: 20_000 });
      await trellis.restartNats({ kill: round % 2 === 1 });
    }
    const before = published.length;
    await eventually(() => published.length > before + 50, { timeout: 20_000 });
    running = false;
    await Promise.all(publishers);
    await eventually(() => expect(published.filter((id) => !doneBy([one, two]).has(id))).toEqual([]), {
      timeout: 20_000,
    });
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0), { timeout: 20_000 });
    // A server that is killed forgets the last of what it delivered and heard: another replica may get that again.
    // What one replica has acknowledged it never handles again.
    for (const child of [one, two]) expect([...doneBy([child])].filter(([, times]) => times > 1)).toEqual([]);
    expect(await deadLetters(trellis)).toEqual([]);
    expect(await storedEvents(trellis)).toBe(published.length);
    for (const child of [one, two]) {
      child.tell("stop");
      expect(await child.exited, child.errors()).toEqual({ code: 0, signal: null });
      expect(child.errors()).toBe("");
    }
    expect(unhandled.seen).toEqual([]);
  }, 180_000);
});

describe("a consumer", () => {
  it("is killed in its handler: the event comes again to another replica, as the next attempt", async () => {
    await using trellis = await startTrellis();
    const placed = await startShop(trellis);
    await using first = startChild(trellis, "event-consumer", "hang");
    await first.line("ready");
    await placed.publish(order("o1")).orThrow();
    await first.line("begun o1 1");
    first.kill("SIGKILL");
    await first.exited;
    await using second = startChild(trellis, "event-consumer");
    await second.line("begun o1 2");
    await second.line("done o1");
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0));
  }, 90_000);

  it("stops while it handles: what has begun ends, the rest goes to the others at once", async () => {
    await using trellis = await startTrellis();
    const placed = await startShop(trellis);
    await using first = startChild(trellis, "event-consumer");
    await first.line("ready");
    await Promise.all(Array.from({ length: 200 }, (_, n) => placed.publish(order(`o${n}`)).orThrow()));
    await first.line("done ");
    first.tell("stop");
    await first.line("stopped");
    await using second = startChild(trellis, "event-consumer");
    await second.line("ready");
    await eventually(() => expect(doneBy([first, second]).size).toBe(200));
    await eventually(async () => expect(await outstanding(trellis, "billing")).toBe(0));
    expect([...doneBy([first, second]).values()].filter((times) => times > 1)).toEqual([]);
  }, 90_000);
});

describe("the control plane is down", () => {
  it("events go on, also to a replica that has not seen their publisher yet", async () => {
    const [port, proxyPort] = [await freePort(), await freePort()];
    const http = await startFaultProxy({ target: { host: "127.0.0.1", port }, port: proxyPort });
    const origins = [`http://127.0.0.1:${proxyPort}`];
    const trellis = await startTrellis({ controlPlane: { http: { port, origins } } });
    try {
      const placed = await startShop(trellis);
      const seen: string[] = [];
      await trellis.service(billing, ({ event }) => {
        event.order.placed.listen(({ event: got }) => void seen.push(got.payload.id), { group: "billing" });
      });
      await http.refuse(true);
      http.cut();
      const { ctl, app } = trellis.controlPlane.plane.links;
      // Nothing of it answers on the broker either.
      await Promise.all([ctl.close(), app.close()]);
      for (let n = 0; n < 20; n += 1) await placed.publish(order(`o${n}`)).orThrow();
      await eventually(() => expect(seen).toHaveLength(20));
      await pause(50);
      expect(new Set(seen).size).toBe(20);
    } finally {
      await trellis.stop();
      await http.stop();
    }
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
