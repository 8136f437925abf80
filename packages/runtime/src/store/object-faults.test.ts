import { setTimeout as delay } from "node:timers/promises";
import { type FaultProxy, startFaultProxy } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Streams, startStreams, type TestLink } from "../jetstream/streams.test-kit.ts";
import { makeStore, pattern } from "./store.test-kit.ts";

let streams: Streams;
let link: TestLink;
beforeAll(async () => {
  streams = await startStreams();
  link = await streams.link();
});
afterAll(() => streams[Symbol.asyncDispose]());

const piece = 262_144;
const total = 20;

async function chunkSubjects(stream: string, name: string): Promise<number> {
  const info = await streams.manager.streams.info(stream, { subjects_filter: `$O.${name}.C.>` });
  return Object.keys(info.state.subjects ?? {}).length;
}

/** Gives pieces, and lets `midway` happen in the middle. */
async function* source(midway: () => unknown): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < total; index += 1) {
    if (index === total / 2) await midway();
    yield pattern(piece, index + 1);
  }
}

async function proxied(): Promise<FaultProxy> {
  const proxy = await startFaultProxy({ target: streams.nats.url });
  onTestFinished(() => proxy.stop());
  return proxy;
}

describe("a put that ends half-way (C42)", () => {
  const failure = new Error("the disk is gone");
  it.each([
    ["its source fails", { reason: "source_failed", cause: failure }],
    ["it is aborted", { type: "CancelledError" }],
    ["it is aborted while the source is silent", { type: "CancelledError" }],
  ])("leaves the old object whole and nothing of the new one: %s", async (how, error) => {
    const { open, stream, name } = await makeStore(streams);
    const store = open(link);
    const old = pattern(1_000_000);
    await store.put("x", old).orThrow();
    const controller = new AbortController();
    const midway = () => {
      if (how.includes("source fails")) throw failure;
      controller.abort();
      return how.includes("silent") ? new Promise(() => {}) : undefined;
    };
    const started = performance.now();
    const result = await store.put("x", source(midway), { signal: controller.signal });
    expect(performance.now() - started).toBeLessThan(2_500);
    expect(result.isErr() && result.error).toMatchObject(error);
    expect(await chunkSubjects(stream, name)).toBe(1);
    expect(
      Buffer.compare((await (await store.get("x").orThrow())?.bytes().orThrow()) ?? old.subarray(1), old),
    ).toBe(0);
    expect((await store.list().orThrow()).items).toHaveLength(1);
    expect((await streams.manager.streams.info(stream)).state.bytes).toBeLessThan(1_010_000);
  });

  it("because its process was killed leaves chunks, which a sweep removes; a put under way is left alone", async () => {
    const { open, stream, name } = await makeStore(streams);
    const store = open(link);
    await store.put("x", pattern(1_000_000)).orThrow();
    await store.put("y", pattern(10)).orThrow();
    const killed = await streams.link();
    const hang = open(killed).put(
      "x",
      source(() => killed.nats.close().then(() => new Promise(() => {}))),
    );
    void hang;
    const controller = new AbortController();
    let reached = () => {};
    const midway = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const alive = store.put(
      "z",
      source(() => {
        reached();
        return new Promise(() => {});
      }),
      { signal: controller.signal },
    );
    await midway;
    await delay(1_200);
    expect(await chunkSubjects(stream, name)).toBe(4);
    expect(await store.sweep()).toBe(0);
    expect(await store.sweep(1_000)).toBe(2);
    expect(await chunkSubjects(stream, name)).toBe(2);
    expect((await store.list().orThrow()).items.map(({ key }) => key)).toEqual(["x", "y"]);
    expect((await (await store.get("x").orThrow())?.bytes().orThrow())?.length).toBe(1_000_000);
    controller.abort();
    await alive;
  }, 30_000);
});

describe("puts at once", () => {
  it("of one key leave one of them, whole, and no chunks of the others", async () => {
    const { open, stream, name } = await makeStore(streams);
    const stores = await Promise.all(Array.from({ length: 4 }, async () => open(await streams.link())));
    for (let round = 0; round < 10; round += 1) {
      const infos = await Promise.all(
        stores.map((store, index) => store.put("x", pattern(400_000 + index, index + 1)).orThrow()),
      );
      const entry = await stores[0]?.get("x").orThrow();
      expect(infos.map(({ digest }) => digest)).toContain(entry?.info.digest);
      expect((await entry?.bytes())?.isOk()).toBe(true);
      expect(await chunkSubjects(stream, name)).toBe(1);
    }
    await stores[0]?.delete("x").orThrow();
    const created = await Promise.all(stores.map((store) => store.create("x", pattern(300_000))));
    expect(created.filter((result) => result.isOk())).toHaveLength(1);
    for (const result of created)
      if (result.isErr()) expect(result.error).toMatchObject({ type: "StoreError", reason: "exists" });
    expect(await chunkSubjects(stream, name)).toBe(1);
  }, 30_000);
});

describe("a bad network (C45)", () => {
  it("never makes an object that cannot be read: late answers, cuts in the middle, many at once", async () => {
    const { open, stream, name } = await makeStore(streams);
    const proxy = await proxied();
    const store = open(await streams.link(`nats://${proxy.address}`));
    let done = false;
    const weather = (async () => {
      for (let round = 0; !done; round += 1) {
        proxy.delay(round % 3 === 0 ? 150 : 0);
        await delay(60 + (round % 5) * 40);
        if (round % 4 === 3) proxy.cut();
      }
      proxy.delay(0);
    })();
    const outcomes = new Map<string, { ok: boolean; size: number }>();
    await Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let round = 0; round < 12; round += 1) {
          const key = `${lane}/${round}`;
          const size = 600_000 + lane * 1_000 + round;
          const result = await store.put(key, pattern(size, size), { timeout: 10_000 });
          outcomes.set(key, { ok: result.isOk(), size });
        }
      }),
    );
    done = true;
    await weather;
    const direct = open(link);
    let stored = 0;
    for (const [key, { ok, size }] of outcomes) {
      const entry = await direct.get(key).orThrow();
      if (ok) expect(entry, key).toBeDefined();
      if (entry === undefined) continue;
      stored += 1;
      expect((await entry.bytes().orThrow()).length).toBe(size);
    }
    expect(stored).toBeGreaterThan(48);
    // Nothing stands twice in the stream.
    const info = await streams.manager.streams.info(stream, { subjects_filter: `$O.${name}.C.>` });
    for (const count of Object.values(info.state.subjects ?? {})) expect(count).toBeLessThanOrEqual(3);
  }, 90_000);

  it("goes on with a put after a restart of the broker, in the middle of it", async () => {
    const { open } = await makeStore(streams);
    const store = open(link);
    for (const kill of [false, true]) {
      let restarting: Promise<void> | undefined;
      const result = await store.put(
        "x",
        source(() => {
          restarting = streams.restart({ kill });
        }),
        { timeout: 15_000 },
      );
      await restarting;
      if (result.isErr()) {
        // Told, and nothing of it is there.
        expect(["TransportError", "StoreError", "TimeoutError"]).toContain(result.error.type);
        continue;
      }
      expect((await (await store.get("x").orThrow())?.bytes().orThrow())?.length).toBe(piece * total);
    }
  }, 60_000);

  it("goes on with a read after a restart of the broker, in the middle of it", async () => {
    const { open } = await makeStore(streams);
    const store = open(link);
    await store
      .put(
        "x",
        source(() => {}),
      )
      .orThrow();
    const reader = (await store.get("x", { timeout: 15_000 }).orThrow())?.stream().getReader();
    let size = 0;
    for (let index = 0; ; index += 1) {
      const next = await reader?.read();
      if (next === undefined || next.done) break;
      size += next.value.length;
      if (index === 3) await streams.restart({ kill: true });
    }
    expect(size).toBe(piece * total);
  }, 30_000);
});

describe("memory", () => {
  it("stays flat for objects of any size", async () => {
    const { open } = await makeStore(streams);
    const store = open(link);
    const block = pattern(1_000_000);
    async function* large() {
      for (let index = 0; index < 300; index += 1) yield block;
    }
    const samples: number[] = [];
    const sampler = setInterval(() => samples.push(process.memoryUsage().arrayBuffers), 20);
    try {
      const before = process.memoryUsage().arrayBuffers;
      await store.put("x", large()).orThrow();
      let size = 0;
      for await (const piece of (await store.get("x").orThrow())?.stream() ?? []) size += piece.length;
      expect(size).toBe(300_000_000);
      samples.sort((a, b) => a - b);
      // What is not collected yet is among it; the object would be 300 MB.
      expect((samples[Math.floor(samples.length * 0.9)] ?? 0) - before).toBeLessThan(120_000_000);
    } finally {
      clearInterval(sampler);
    }
  }, 60_000);
});
