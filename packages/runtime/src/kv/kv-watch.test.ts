import { setTimeout as delay } from "node:timers/promises";
import { KVError } from "@trellis/protocol";
import { eventually, startFaultProxy } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Streams, startStreams, type TestLink } from "../jetstream/streams.test-kit.ts";
import { defineKv, initialOf, makeBucket } from "./kv.test-kit.ts";
import type { KvChange } from "./kv-entry.ts";

let streams: Streams;
let link: TestLink;
let writer: TestLink;
beforeAll(async () => {
  streams = await startStreams();
  link = await streams.link();
  writer = await streams.link();
});
afterAll(() => streams[Symbol.asyncDispose]());

const numbers = defineKv({ value: Type.Integer() });
const kinds = (changes: readonly KvChange<unknown>[]) =>
  changes.map((change) =>
    change.kind === "value"
      ? `${change.key}=${String(change.value)}`
      : `${change.kind}${change.kind === "ready" ? "" : ` ${change.key}`}`,
  );

async function take(iterator: AsyncIterator<KvChange<number>>, count: number): Promise<KvChange<number>[]> {
  const changes: KvChange<number>[] = [];
  while (changes.length < count) {
    const { value, done } = await iterator.next();
    if (done === true) throw new Error("the watch ended");
    changes.push(value);
  }
  return changes;
}

describe("what a watch gives", () => {
  it("is what is there, then ready, then every change, deletions included", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    await kv.put("a", 1).orThrow();
    await kv.put("b", 2).orThrow();
    await kv.delete("b").orThrow();
    const watch = open(link).watch()[Symbol.asyncIterator]();
    expect(kinds(await take(watch, 2))).toEqual(["a=1", "ready"]);
    await kv.put("b", 3).orThrow();
    await kv.put("a", 4).orThrow();
    await kv.delete("a").orThrow();
    expect(kinds(await take(watch, 3))).toEqual(["b=3", "a=4", "deleted a"]);
    await watch.return?.();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  it("is limited to a prefix or to a key", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    for (const key of ["a/1", "a/10", "a", "b/1", "ax"]) await kv.put(key, 1).orThrow();
    const initial = async (options: { prefix?: string; key?: string }) => {
      const watch = open(link).watch(options)[Symbol.asyncIterator]();
      const changes = await initialOf(watch);
      return { watch, keys: kinds(changes).map((text) => text.split("=")[0]) };
    };
    expect((await initial({ prefix: "a/" })).keys).toEqual(["a/1", "a/10"]);
    expect((await initial({ prefix: "a/1" })).keys).toEqual(["a/1", "a/10"]);
    expect((await initial({ prefix: "a" })).keys).toEqual(["a/1", "a/10", "a", "ax"]);
    expect((await initial({ key: "a/*" })).keys).toEqual([]);
    const { watch, keys } = await initial({ key: "a/1" });
    expect(keys).toEqual(["a/1"]);
    await kv.put("a/10", 2).orThrow();
    await kv.put("a/1", 3).orThrow();
    expect(kinds(await take(watch, 1))).toEqual(["a/1=3"]);
    expect(() => open(link).watch({ key: "" })).toThrow();
    expect(() => open(link).watch({ key: "a", prefix: "a" })).toThrow(TypeError);
  });

  it("tells a value that cannot be read by its key, and goes on (C83)", async () => {
    const { open, subject } = await makeBucket(streams, numbers);
    const kv = open(writer);
    streams.admin.publish(`${subject}.bad`, "{oops");
    await streams.admin.flush();
    const watch = open(link).watch()[Symbol.asyncIterator]();
    const [bad] = await take(watch, 2);
    expect(bad).toMatchObject({ kind: "invalid", key: "bad", error: { reason: "invalid_value" } });
    await kv.put("good", 1).orThrow();
    streams.admin.publish(`${subject}.bad2`, '"text"');
    await streams.admin.flush();
    await kv.put("good", 2).orThrow();
    const changes = await take(watch, 3);
    expect(changes.map(({ kind }) => kind)).toEqual(["value", "invalid", "value"]);
  });

  it("of a bucket with a history begins with the newest of each key", async () => {
    const { open } = await makeBucket(streams, defineKv({ value: Type.Integer(), history: 4 }));
    const kv = open(writer);
    for (let value = 0; value < 4; value += 1)
      for (const key of ["a", "b"]) await kv.put(key, value).orThrow();
    await kv.delete("b").orThrow();
    const watch = open(link).watch()[Symbol.asyncIterator]();
    expect(kinds(await initialOf(watch))).toEqual(["a=3"]);
    await kv.put("b", 9).orThrow();
    expect(kinds(await take(watch, 1))).toEqual(["b=9"]);
  });

  it("can be asked for ahead, and ends with its signal, with return and with the connection", async () => {
    const { open } = await makeBucket(streams, numbers);
    const own = await streams.link();
    const controller = new AbortController();
    const kv = open(own);
    const watch = kv.watch({ signal: controller.signal })[Symbol.asyncIterator]();
    const [first, second] = [watch.next(), watch.next()];
    expect((await first).value).toEqual({ kind: "ready" });
    await open(writer).put("a", 1).orThrow();
    expect((await second).value).toMatchObject({ key: "a" });
    const parked = watch.next();
    controller.abort();
    await expect(parked).rejects.toMatchObject({ type: "CancelledError" });
    const other = kv.watch()[Symbol.asyncIterator]();
    await initialOf(other);
    const waiting = other.next();
    await own.close();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await expect(kv.watch()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      type: "UnavailableError",
    });
  });
});

describe("ready (C24)", () => {
  it.each(["an empty bucket", "a bucket of deleted keys", "a prefix without a match"])(
    "comes once and soon for %s, and the watch goes on",
    async (what) => {
      const { open } = await makeBucket(streams, numbers);
      const kv = open(writer);
      if (what.includes("deleted")) {
        for (let index = 0; index < 300; index += 1) await kv.put(`k${index}`, 1).orThrow();
        for (let index = 0; index < 300; index += 1) await kv.delete(`k${index}`).orThrow();
      }
      if (what.includes("prefix")) await kv.put("other/a", 1).orThrow();
      const prefix = what.includes("prefix") ? "mine/" : "";
      const watch = open(link).watch({ prefix })[Symbol.asyncIterator]();
      const started = performance.now();
      expect(await initialOf(watch)).toEqual([]);
      expect(performance.now() - started).toBeLessThan(1_000);
      await kv.put(`${prefix}new`, 5).orThrow();
      expect(kinds(await take(watch, 1))).toEqual([`${prefix}new=5`]);
    },
  );

  it("comes after every key that was there, while others write and delete without a pause", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const stable = 10_000;
    for (let from = 0; from < stable; from += 1_000)
      await Promise.all(Array.from({ length: 1_000 }, (_, index) => kv.put(`k${from + index}`, 0).orThrow()));
    let stop = false;
    const storm = Promise.all(
      Array.from({ length: 16 }, async (_, lane) => {
        for (let round = 0; !stop; round += 1) {
          // Rewritten keys move to the end of the stream while it is read.
          await kv.put(`k${(lane * 613 + round * 37) % stable}`, round).orThrow();
          await kv.put(`x${lane}`, round).orThrow();
          await kv.delete(`x${lane}`).orThrow();
        }
      }),
    );
    for (let round = 0; round < 5; round += 1) {
      const watch = open(link).watch()[Symbol.asyncIterator]();
      const keys = new Set(
        (await initialOf(watch)).flatMap((change) => ("key" in change ? [change.key] : [])),
      );
      const missing = Array.from({ length: stable }, (_, index) => `k${index}`).filter(
        (key) => !keys.has(key),
      );
      expect(missing).toEqual([]);
      await watch.return?.();
      const listed = new Set(await open(link).keys("k").collect().orThrow());
      expect(listed.size).toBe(stable);
    }
    stop = true;
    await storm;
  });
});

describe("a reader that is slow", () => {
  it("makes no memory grow, and gets the newest value of every key in the end", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const watch = open(link).watch()[Symbol.asyncIterator]();
    await initialOf(watch);
    const total = 100_000;
    const heap = () => {
      globalThis.gc?.();
      return process.memoryUsage().heapUsed;
    };
    const write = async (from: number, to: number) => {
      for (let at = from; at < to; at += 500)
        await Promise.all(
          Array.from({ length: 500 }, (_, index) => kv.put(`k${index % 50}`, at + index).orThrow()),
        );
    };
    await write(0, 20_000);
    const before = heap();
    await write(20_000, total);
    expect(heap() - before).toBeLessThan(24 * 2 ** 20);
    await kv.put("last", 1).orThrow();
    const newest = new Map<string, number>();
    const revisions = new Map<string, number>();
    let changes = 0;
    while (!newest.has("last")) {
      const { value } = await watch.next();
      if (value?.kind !== "value") continue;
      changes += 1;
      expect(value.revision).toBeGreaterThan(revisions.get(value.key) ?? 0);
      revisions.set(value.key, value.revision);
      newest.set(value.key, value.value);
    }
    expect(changes).toBeLessThan(2_000);
    for (let key = 0; key < 50; key += 1) expect(newest.get(`k${key}`)).toBe(total - 50 + key);
    await kv.put("k1", -1).orThrow();
    expect(kinds(await take(watch, 1))).toEqual(["k1=-1"]);
  });

  it("does not hold up or disturb those who read quickly", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const slow = open(link).watch()[Symbol.asyncIterator]();
    const quick = open(link).watch()[Symbol.asyncIterator]();
    await initialOf(slow);
    await initialOf(quick);
    const total = 20_000;
    const reading = (async () => {
      let count = 0;
      for (let last = 0; last < total - 1; ) {
        const { value } = await quick.next();
        count += 1;
        if (value?.kind === "value") last = value.value;
      }
      return count;
    })();
    for (let at = 0; at < total; at += 200)
      await Promise.all(Array.from({ length: 200 }, (_, index) => kv.put(`k${index}`, at + index).orThrow()));
    expect(await reading).toBeGreaterThan(total * 0.5);
  });
});

describe("restarts of the broker (C25, C26)", () => {
  it("are outlived: later changes come once, in order, deletions too; nothing is left on the server", async () => {
    const { open, binding } = await makeBucket(streams, numbers);
    const kv = open(writer);
    for (const key of ["a", "b", "c"]) await kv.put(key, 0).orThrow();
    const whole = open(link).watch()[Symbol.asyncIterator]();
    const part = open(link).watch({ prefix: "p/" })[Symbol.asyncIterator]();
    await initialOf(whole);
    await initialOf(part);
    for (let round = 1; round <= 10; round += 1) {
      await streams.restart({ kill: round % 2 === 0 });
      await kv.put("a", round, { timeout: 10_000 }).orThrow();
      await kv.put(`p/n${round}`, round).orThrow();
      await kv.put("d", round).orThrow();
      await kv.delete("d").orThrow();
      // Of what was written while the watch was away, only the newest of a key is still there.
      const seen: string[] = [];
      while (!seen.includes("deleted d")) seen.push(...kinds(await take(whole, 1)));
      expect(seen.filter((text) => text !== `d=${round}`)).toEqual([
        `a=${round}`,
        `p/n${round}=${round}`,
        "deleted d",
      ]);
      expect(kinds(await take(part, 1))).toEqual([`p/n${round}=${round}`]);
    }
    const info = await streams.manager.streams.info(`KV_${binding.bucket}`);
    expect(info.state.consumer_count).toBe(0);
  }, 60_000);

  it("while the reader is busy with an item do not end the watch", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    await kv.put("a", 0).orThrow();
    const watch = open(link).watch()[Symbol.asyncIterator]();
    await take(watch, 1);
    await streams.restart({ kill: true });
    for (const key of ["x", "y", "z"]) await kv.put(key, 1, { timeout: 10_000 }).orThrow();
    await delay(1_500);
    // What was read ahead before the restart may hold `ready` already.
    const seen = kinds(await take(watch, 4));
    expect(seen.filter((text) => text !== "ready")).toEqual(["x=1", "y=1", "z=1"]);
    expect(seen).toContain("ready");
    await kv.put("a", 2).orThrow();
    expect(kinds(await take(watch, 1))).toEqual(["a=2"]);
  }, 30_000);

  it("under load lose nothing: the newest value of every key arrives", async () => {
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const watch = open(link).watch()[Symbol.asyncIterator]();
    await initialOf(watch);
    const newest = new Map<string, number>();
    const revisions = new Map<string, number>();
    let done = false;
    const reading = (async () => {
      while (!done) {
        const { value } = await watch.next();
        if (value?.kind !== "value") continue;
        expect(value.revision).toBeGreaterThan(revisions.get(value.key) ?? 0);
        revisions.set(value.key, value.revision);
        newest.set(value.key, value.value);
        done = value.key === "end";
      }
    })();
    const written = new Map<string, number>();
    let stop = false;
    const writing = Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let round = 1; !stop; round += 1) {
          const key = `k${lane}-${round % 20}`;
          const result = await kv.put(key, round, { timeout: 10_000 });
          if (result.isOk()) written.set(key, round);
          // What is not known to be stored may be: it is no longer the key's expected value.
          else written.delete(key);
        }
      }),
    );
    for (let round = 0; round < 4; round += 1) {
      await delay(300);
      await streams.restart({ kill: round % 2 === 0 });
    }
    await delay(200);
    stop = true;
    await writing;
    await kv.put("end", 1).orThrow();
    await reading;
    expect(written.size).toBeGreaterThan(100);
    for (const [key, value] of written) expect(newest.get(key), key).toBe(value);
  }, 60_000);

  it("that take JetStream away for good end the watch by name", async () => {
    const { open, binding } = await makeBucket(streams, numbers);
    const watch = open(link).watch()[Symbol.asyncIterator]();
    await initialOf(watch);
    await streams.manager.streams.delete(`KV_${binding.bucket}`);
    await streams.restart();
    await expect(watch.next()).rejects.toMatchObject({ type: "KVError", reason: "bucket_missing" });
    expect((await watch.next()).done).toBe(true);
  }, 30_000);
});

describe("losses on the way", () => {
  it("are seen by the next change and repaired", async () => {
    const { open, binding } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const whole = open(link).watch()[Symbol.asyncIterator]();
    const part = open(link).watch({ prefix: "p/" })[Symbol.asyncIterator]();
    await initialOf(whole);
    await initialOf(part);
    // Without a republish nothing is heard of these.
    await streams.silence(binding.bucket, true);
    await kv.put("p/a", 1).orThrow();
    await kv.put("p/b", 1).orThrow();
    await streams.silence(binding.bucket, false);
    await kv.put("p/a", 2).orThrow();
    await kv.put("c", 2).orThrow();
    expect(kinds(await take(whole, 3)).sort()).toEqual(["c=2", "p/a=2", "p/b=1"]);
    expect(kinds(await take(part, 2)).sort()).toEqual(["p/a=2", "p/b=1"]);
  });

  it("that no change betrays are repaired within seconds", async () => {
    const { open, binding } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const watch = open(link).watch({ prefix: "p/" })[Symbol.asyncIterator]();
    await initialOf(watch);
    await streams.silence(binding.bucket, true);
    await kv.put("p/a", 1).orThrow();
    expect(kinds(await take(watch, 1))).toEqual(["p/a=1"]);
  }, 30_000);

  it("by a cut connection are made good when it is back", async () => {
    const proxy = await startFaultProxy({ target: streams.nats.url });
    onTestFinished(() => proxy.stop());
    const own = await streams.link(`nats://${proxy.address}`);
    const { open } = await makeBucket(streams, numbers);
    const kv = open(writer);
    const watch = open(own).watch()[Symbol.asyncIterator]();
    await initialOf(watch);
    await proxy.refuse(true);
    proxy.cut();
    await kv.put("a", 1).orThrow();
    await kv.put("b", 1).orThrow();
    await kv.delete("b").orThrow();
    await proxy.refuse(false);
    expect(kinds(await take(watch, 2))).toEqual(["a=1", "deleted b"]);
    await own.close();
  });
});

describe("a bucket that was made anew or emptied", () => {
  it("ends a watch by name, soon after", async () => {
    const { open, binding } = await makeBucket(streams, numbers);
    const kv = open(writer);
    for (const key of ["a", "b", "c"]) await kv.put(key, 1).orThrow();
    const watch = open(link).watch()[Symbol.asyncIterator]();
    await initialOf(watch);
    await streams.manager.streams.delete(`KV_${binding.bucket}`);
    await streams.addBucket(binding.bucket);
    await eventually(async () => (await kv.put("a", 2)).isOk());
    const error = await watch.next().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(KVError);
    expect(error).toMatchObject({ reason: "bucket_replaced" });
    const again = open(link).watch()[Symbol.asyncIterator]();
    expect(kinds(await initialOf(again))).toEqual(["a=2"]);
  });
});
