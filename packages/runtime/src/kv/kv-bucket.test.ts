import { headers } from "@nats-io/nats-core";
import { KVError, ValidationError } from "@trellis/protocol";
import { eventually } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Streams, startStreams, type TestLink } from "../jetstream/streams.test-kit.ts";
import { defineKv, makeBucket } from "./kv.test-kit.ts";

let streams: Streams;
let link: TestLink;
beforeAll(async () => {
  streams = await startStreams();
  link = await streams.link();
});
afterAll(() => streams[Symbol.asyncDispose]());

const Cart = Type.Object({ items: Type.Integer({ minimum: 0 }) }, { additionalProperties: false });
const carts = defineKv({ value: Cart });

describe("values", () => {
  it("are put, read, replaced by revision and deleted", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    expect(await kv.get("a").orThrow()).toBeUndefined();
    const first = await kv.put("a", { items: 1 }).orThrow();
    const entry = await kv.get("a").orThrow();
    expect(entry).toEqual({
      kind: "value",
      key: "a",
      value: { items: 1 },
      revision: first.revision,
      updatedAt: expect.any(Date),
      expiresAt: undefined,
    });
    expect(Math.abs((entry?.updatedAt.getTime() ?? 0) - Date.now())).toBeLessThan(5_000);
    const second = await kv.replace("a", { items: 2 }, { revision: first.revision }).orThrow();
    expect(second.revision).toBeGreaterThan(first.revision);
    await kv.delete("a").orThrow();
    expect(await kv.get("a").orThrow()).toBeUndefined();
  });

  it("are stored as their JSON text alone: any NATS tool reads them", async () => {
    const { open, subject } = await makeBucket(streams, carts);
    const kv = open(link);
    await kv.put("orders/7", { items: 3 }).orThrow();
    const stored = await streams.manager.streams.getMessage(`KV_${subject.slice(4)}`, {
      last_by_subj: `${subject}.orders.7`,
    });
    expect(stored?.string()).toBe('{"items":3}');
    streams.admin.publish(`${subject}.orders.8`, '{"items":4}');
    await streams.admin.flush();
    expect((await kv.get("orders/8").orThrow())?.value).toEqual({ items: 4 });
  });

  it("that do not fit are refused before anything is sent, by their place", async () => {
    const kv = (await makeBucket(streams, defineKv({ value: Cart, maxValue: "64B" }))).open(link);
    const result = await kv.put("a", { items: -1 });
    expect(result.isErr() && result.error).toBeInstanceOf(ValidationError);
    expect(result.isErr() && result.error.type === "ValidationError" && result.error.errors[0]?.path).toBe(
      "/items",
    );
    const large = (await makeBucket(streams, defineKv({ value: Type.String(), maxValue: "64B" }))).open(link);
    expect((await large.put("a", "x".repeat(63))).isErr()).toBe(true);
    expect((await large.put("a", "x".repeat(62))).isOk()).toBe(true);
    expect(await kv.get("a").orThrow()).toBeUndefined();
  });

  it("that are larger than the broker takes are refused", async () => {
    const kv = (await makeBucket(streams, defineKv({ value: Type.String() }))).open(link);
    const result = await kv.put("a", "x".repeat(2 ** 21));
    expect(result.isErr() && result.error.type).toBe("ValidationError");
    expect((await kv.put("a", "fine")).isOk()).toBe(true);
  });

  it("of 64 KiB and unicode come back as they were", async () => {
    const kv = (await makeBucket(streams, defineKv({ value: Type.String() }))).open(link);
    const text = "Zürich 🦀 \u0000 ".repeat(3_000);
    await kv.put("a", text).orThrow();
    expect((await kv.get("a").orThrow())?.value).toBe(text);
  });

  it("go away by the bucket's ttl, and by their own", async () => {
    const bucket = defineKv({ value: Cart, ttl: "1h" });
    const kv = (await makeBucket(streams, bucket)).open(link);
    await kv.put("stays", { items: 1 }).orThrow();
    await kv.put("goes", { items: 1 }, { ttl: "1s" }).orThrow();
    const entry = await kv.get("goes").orThrow();
    expect((entry?.expiresAt?.getTime() ?? 0) - (entry?.updatedAt.getTime() ?? 0)).toBe(1_000);
    const other = await kv.get("stays").orThrow();
    expect((other?.expiresAt?.getTime() ?? 0) - (other?.updatedAt.getTime() ?? 0)).toBe(3_600_000);
    await eventually(async () => (await kv.get("goes").orThrow()) === undefined);
    expect(await kv.get("stays").orThrow()).toBeDefined();
    expect((await kv.create("goes", { items: 2 })).isOk()).toBe(true);
  });

  it("with a history cannot have a ttl of their own: the older one would come back", async () => {
    const kv = (await makeBucket(streams, defineKv({ value: Cart, history: 3 }))).open(link);
    const result = await kv.put("a", { items: 1 }, { ttl: "1s" });
    expect(result.isErr() && result.error.type === "KVError" && result.error.reason).toBe("refused");
  });
});

describe("conditions", () => {
  it("create fails by name where a live value is, and succeeds over a deleted one", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    const { revision } = await kv.create("a", { items: 1 }).orThrow();
    const again = await kv.create("a", { items: 2 });
    expect(again.isErr() && again.error).toMatchObject({
      type: "KVError",
      reason: "exists",
      key: "a",
      revision,
    });
    await kv.delete("a").orThrow();
    expect((await kv.create("a", { items: 3 })).isOk()).toBe(true);
    expect((await kv.get("a").orThrow())?.value).toEqual({ items: 3 });
  });

  it("replace and a checked delete fail by name at another revision, and change nothing", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    const { revision } = await kv.put("a", { items: 1 }).orThrow();
    const { revision: newer } = await kv.put("a", { items: 2 }).orThrow();
    for (const result of [
      await kv.replace("a", { items: 3 }, { revision }),
      await kv.delete("a", { revision }),
    ]) {
      expect(result.isErr() && result.error).toMatchObject({ reason: "revision_mismatch", revision: newer });
    }
    expect((await kv.get("a").orThrow())?.value).toEqual({ items: 2 });
    await kv.delete("a", { revision: newer }).orThrow();
    expect(await kv.get("a").orThrow()).toBeUndefined();
  });

  it("take no revision that is none", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    for (const revision of [0, -1, 1.5, Number.NaN, 2 ** 60])
      expect((await kv.replace("a", { items: 1 }, { revision })).isErr()).toBe(true);
  });
});

describe("history", () => {
  it("gives what is kept of a key, deletions included, oldest first", async () => {
    const kv = (await makeBucket(streams, defineKv({ value: Cart, history: 3 }))).open(link);
    for (const items of [1, 2, 3]) await kv.put("a", { items }).orThrow();
    await kv.put("b", { items: 9 }).orThrow();
    await kv.delete("a").orThrow();
    const history = await kv.history("a").orThrow();
    expect(history.map((stored) => (stored.kind === "value" ? stored.value : stored.kind))).toEqual([
      { items: 2 },
      { items: 3 },
      "deleted",
    ]);
    expect(await kv.history("none").orThrow()).toEqual([]);
    const [old] = history;
    expect((await kv.get("a", { revision: old?.revision ?? 0 }).orThrow())?.value).toEqual({ items: 2 });
    expect(await kv.get("b", { revision: old?.revision ?? 0 }).orThrow()).toBeUndefined();
    // The deletion itself is a revision without a value.
    expect(await kv.get("a", { revision: history[2]?.revision ?? 0 }).orThrow()).toBeUndefined();
  });
});

describe("keys from outside (C10, C15)", () => {
  it("act as wildcards nowhere: others are untouched", async () => {
    const { open, binding } = await makeBucket(streams, carts);
    const other = (await makeBucket(streams, carts)).open(link);
    const kv = open(link);
    for (const key of ["a", "a/b", "b", "foo", "x/y/z"]) await kv.put(key, { items: 1 }).orThrow();
    const hostile = [
      "*",
      ">",
      "a.*",
      "a.>",
      "foo*",
      ".",
      "a..b",
      ".a",
      "a.",
      `$KV.${binding.bucket}.a`,
      "a b",
      "\r\n",
    ];
    for (const key of hostile) {
      expect(await kv.get(key).orThrow(), key).toBeUndefined();
      expect(await kv.history(key).orThrow()).toEqual([]);
      await kv.create(key, { items: 7 }).orThrow();
      expect((await kv.get(key).orThrow())?.key).toBe(key);
      expect((await kv.create(key, { items: 7 })).isErr()).toBe(true);
      await kv.put(key, { items: 8 }).orThrow();
      expect(await kv.keys(key).collect().orThrow()).toContain(key);
      await kv.delete(key).orThrow();
    }
    expect([...(await kv.keys().collect().orThrow())].sort()).toEqual(["a", "a/b", "b", "foo", "x/y/z"]);
    expect(await other.keys().collect().orThrow()).toEqual([]);
    for (const key of ["a", "a/b", "b", "foo", "x/y/z"])
      expect((await kv.get(key).orThrow())?.value).toEqual({ items: 1 });
  });

  it("come back as they were, whatever they hold; what cannot be kept is refused by name, at once", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    const keys = [
      "a:b",
      "a+b==",
      "me@x.org",
      "a b",
      "Zürich",
      "🦀",
      "a/b",
      "a..b",
      "A",
      "a",
      "k".repeat(600),
      "\0",
    ];
    keys.push("é", "e\u0301", "/", "//x", "ü".repeat(600));
    for (const [items, key] of keys.entries()) await kv.put(key, { items }).orThrow();
    expect([...(await kv.keys().collect().orThrow())].sort()).toEqual([...keys].sort());
    for (const [items, key] of keys.entries())
      expect((await kv.get(key).orThrow())?.value).toEqual({ items });
    expect(await kv.keys("a/").collect().orThrow()).toEqual(["a/b"]);
    expect([...(await kv.keys("a").collect().orThrow())].sort()).toEqual(
      keys.filter((key) => key.startsWith("a")).sort(),
    );
    for (const key of ["", "a\ud800", "k".repeat(3_001)]) {
      const result = await kv.get(key);
      expect(result.isErr() && result.error.type).toBe("ValidationError");
      expect((await kv.put(key, { items: 1 })).isErr()).toBe(true);
      expect((await kv.delete(key)).isErr()).toBe(true);
    }
    const failed = await kv.keys("\ud800/").collect();
    expect(failed.isErr() && failed.error.type).toBe("ValidationError");
  });
});

describe("values that nobody can read (C83)", () => {
  it("are errors of their own key: others are listed, and they can be deleted and overwritten", async () => {
    const bucket = defineKv({
      value: Cart,
      version: 2,
      migrate: { 1: (old) => ({ items: (old as { count: number }).count }) },
    });
    const { open, subject } = await makeBucket(streams, bucket);
    const kv = open(link);
    for (let index = 0; index < 100; index += 1) await kv.put(`good/${index}`, { items: index }).orThrow();
    const raw: [string, string, string?][] = [
      ["not-json", "{oops"],
      ["misfit", '{"items":"many"}', "2"],
      ["empty", ""],
      ["bytes", "\u0001"],
      ["newer", '{"items":1}', "3"],
      ["older", '{"count":5}'],
      ["proto", '{"__proto__":1,"items":1}', "2"],
    ];
    for (const [key, data, version] of raw) {
      const set = headers();
      if (version !== undefined) set.set("Trellis-Version", version);
      streams.admin.publish(`${subject}.${key}`, data, { headers: set });
    }
    await streams.admin.flush();
    expect((await kv.get("older").orThrow())?.value).toEqual({ items: 5 });
    for (const [key, reason] of [
      ["not-json", "invalid_value"],
      ["misfit", "invalid_value"],
      ["empty", "invalid_value"],
      ["bytes", "invalid_value"],
      ["newer", "unknown_version"],
      ["proto", "invalid_value"],
    ] as const) {
      const result = await kv.get(key);
      expect(result.isErr() && result.error, key).toMatchObject({ type: "KVError", reason, key });
      const [stored] = await kv.history(key).orThrow();
      expect(stored).toMatchObject({ kind: "invalid", key });
      // It is there: create says so, and what is to be written over it has its revision.
      const { error } = stored?.kind === "invalid" ? stored : { error: undefined };
      const exists = await kv.create(key, { items: 1 });
      expect(exists.isErr() && exists.error).toMatchObject({ reason: "exists", revision: error?.revision });
    }
    const entries = await kv.entries().collect().orThrow();
    expect(entries.filter(({ kind }) => kind === "value")).toHaveLength(101);
    expect(entries.filter(({ kind }) => kind === "invalid")).toHaveLength(6);
    expect(await kv.keys().collect().orThrow()).toHaveLength(107);
    await kv.delete("not-json").orThrow();
    await kv.put("misfit", { items: 1 }).orThrow();
    const empty = await kv.get("empty");
    const revision = empty.isErr() && empty.error instanceof KVError ? (empty.error.revision ?? 0) : 0;
    await kv.replace("empty", { items: 2 }, { revision }).orThrow();
    expect((await kv.get("empty").orThrow())?.value).toEqual({ items: 2 });
    expect(await kv.keys().collect().orThrow()).toHaveLength(106);
  });

  it("are migrated when they are read, and never written back by that", async () => {
    const bucket = defineKv({
      value: Cart,
      version: 3,
      migrate: {
        1: (old) => ({ items: Number(old) }),
        2: () => {
          throw new Error("cannot");
        },
      },
    });
    const { open, subject } = await makeBucket(streams, bucket);
    const kv = open(link);
    streams.admin.publish(`${subject}.a`, "4");
    const two = headers();
    two.set("Trellis-Version", "2");
    streams.admin.publish(`${subject}.b`, "4", { headers: two });
    await streams.admin.flush();
    const entry = await kv.get("a").orThrow();
    expect(entry?.value).toEqual({ items: 4 });
    expect((await kv.get("a").orThrow())?.revision).toBe(entry?.revision);
    const failed = await kv.get("b");
    expect(failed.isErr() && failed.error).toMatchObject({ type: "KVError", reason: "invalid_value" });
    await kv.replace("a", { items: 5 }, { revision: entry?.revision ?? 0 }).orThrow();
    expect((await kv.get("a").orThrow())?.value).toEqual({ items: 5 });
  });
});

describe("listings (C84)", () => {
  it("of empty and of deleted-only buckets end at once, with nothing", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    expect(await kv.keys().collect().orThrow()).toEqual([]);
    for (let index = 0; index < 10; index += 1) await kv.put(`k${index}`, { items: 1 }).orThrow();
    for (let index = 0; index < 10; index += 1) await kv.delete(`k${index}`).orThrow();
    const started = performance.now();
    expect(await kv.keys().collect().orThrow()).toEqual([]);
    expect(await kv.entries("k").collect().orThrow()).toEqual([]);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("of many keys are read page by page, and can be broken off; nothing stays on the server", async () => {
    const { open, binding } = await makeBucket(streams, carts);
    const kv = open(link);
    const total = 20_000;
    for (let from = 0; from < total; from += 1_000) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, index) => kv.put(`k/${from + index}`, { items: 1 }).orThrow()),
      );
    }
    let count = 0;
    for await (const key of kv.keys("k/")) {
      expect(key.startsWith("k/")).toBe(true);
      count += 1;
      if (count === 300) break;
    }
    expect(new Set(await kv.keys().collect().orThrow()).size).toBe(total);
    const info = await streams.manager.streams.info(`KV_${binding.bucket}`);
    expect(info.state.consumer_count).toBe(0);
    expect(link.requests.size).toBe(0);
  });

  it("of a bucket with a history give the newest of each key", async () => {
    const kv = (await makeBucket(streams, defineKv({ value: Cart, history: 5 }))).open(link);
    for (let items = 0; items < 5; items += 1)
      for (const key of ["a", "b", "c"]) await kv.put(key, { items }).orThrow();
    await kv.delete("b").orThrow();
    const entries = await kv.entries().collect().orThrow();
    expect(entries.map((entry) => [entry.key, entry.kind === "value" && entry.value])).toEqual([
      ["a", { items: 4 }],
      ["c", { items: 4 }],
    ]);
  });
});

describe("a bucket that is not there (C85)", () => {
  it("is an error by name for every operation, and is never made", async () => {
    const { open, binding } = await makeBucket(streams, carts);
    const kv = open(link);
    await kv.put("a", { items: 1 }).orThrow();
    await streams.manager.streams.delete(`KV_${binding.bucket}`);
    const results = await Promise.all([
      kv.get("a"),
      kv.put("a", { items: 1 }),
      kv.create("a", { items: 1 }),
      kv.delete("a"),
      kv.history("a"),
      kv.keys().collect(),
    ]);
    for (const result of results)
      expect(result.isErr() && result.error).toMatchObject({ type: "KVError", reason: "bucket_missing" });
    await expect(streams.manager.streams.info(`KV_${binding.bucket}`)).rejects.toThrow();
  });

  it("that is full says so", async () => {
    const { open, binding } = await makeBucket(streams, defineKv({ value: Type.String() }));
    const kv = open(link);
    await streams.manager.streams.update(`KV_${binding.bucket}`, { max_bytes: 4_096 });
    let result = await kv.put("k0", "x".repeat(500));
    for (let index = 1; index < 20 && result.isOk(); index += 1)
      result = await kv.put(`k${index}`, "x".repeat(500));
    expect(result.isErr() && result.error).toMatchObject({ type: "KVError", reason: "bucket_full" });
  });
});

describe("signals and deadlines", () => {
  it("end an operation that has not been answered", async () => {
    const kv = (await makeBucket(streams, carts)).open(link);
    const aborted = await kv.get("a", { signal: AbortSignal.abort() });
    expect(aborted.isErr() && aborted.error.type).toBe("CancelledError");
    const written = await kv.put("a", { items: 1 }, { signal: AbortSignal.abort() });
    expect(written.isErr() && written.error.type).toBe("CancelledError");
    expect(await kv.get("a").orThrow()).toBeUndefined();
    expect(link.requests.size).toBe(0);
  });
});

describe("large sequences (C81)", () => {
  it("are exact up to 2^53, and refused beyond", async () => {
    const name = `big${process.pid}`;
    const { open, binding } = await makeBucket(streams, carts);
    await streams.manager.streams.delete(`KV_${binding.bucket}`);
    await streams.addBucket(binding.bucket, { first_seq: 2 ** 53 - 3 });
    const kv = open(link);
    const { revision } = await kv.put(name, { items: 1 }).orThrow();
    expect(revision).toBe(2 ** 53 - 3);
    expect((await kv.replace(name, { items: 2 }, { revision })).isOk()).toBe(true);
    await kv.put(name, { items: 3 }).orThrow();
    const beyond = await kv.put(name, { items: 4 });
    expect(beyond.isErr() && beyond.error).toMatchObject({ code: "trellis.jetstream.unreadable" });
    expect((await kv.get(name)).isErr()).toBe(true);
  });
});
