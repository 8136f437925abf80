import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { ReadableStream } from "node:stream/web";
import { setTimeout as delay } from "node:timers/promises";
import { encodeObjectDigest, encodeStoreKey } from "@trellis/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Streams, startStreams, type TestLink } from "../jetstream/streams.test-kit.ts";
import { makeStore, pattern } from "./store.test-kit.ts";
import type { StoreSource } from "./store.ts";

let streams: Streams;
let link: TestLink;
beforeAll(async () => {
  streams = await startStreams();
  link = await streams.link();
});
afterAll(() => streams[Symbol.asyncDispose]());

const text = (value: string) => new TextEncoder().encode(value);
const digestOf = (bytes: Uint8Array) => encodeObjectDigest(createHash("sha256").update(bytes).digest());

async function usedBytes(stream: string): Promise<number> {
  return (await streams.manager.streams.info(stream)).state.bytes;
}

/** Subjects of chunks in a stream, with their number. */
async function chunksOf(stream: string, name: string): Promise<Record<string, number>> {
  const info = await streams.manager.streams.info(stream, { subjects_filter: `$O.${name}.C.>` });
  return info.state.subjects ?? {};
}

describe("objects", () => {
  it("are put, described, read, replaced and deleted", async () => {
    const store = (await makeStore(streams)).open(link);
    expect(await store.get("a").orThrow()).toBeUndefined();
    expect(await store.head("a").orThrow()).toBeUndefined();
    const info = await store
      .put("a", text("one"), { contentType: "text/plain", metadata: { by: "me" } })
      .orThrow();
    expect(info).toEqual({
      key: "a",
      size: 3,
      updatedAt: expect.any(Date),
      digest: digestOf(text("one")),
      contentType: "text/plain",
      metadata: { by: "me" },
    });
    expect(await store.head("a").orThrow()).toEqual(info);
    const entry = await store.get("a").orThrow();
    expect(entry?.info).toEqual(info);
    expect(await entry?.bytes().orThrow()).toEqual(text("one"));
    const created = await store.create("a", text("two"));
    expect(created.isErr() && created.error).toMatchObject({
      type: "StoreError",
      reason: "exists",
      key: "a",
    });
    await store.put("a", text("three")).orThrow();
    expect(await (await store.get("a").orThrow())?.bytes().orThrow()).toEqual(text("three"));
    expect(await store.delete("a").orThrow()).toBe(true);
    expect(await store.delete("a").orThrow()).toBe(false);
    expect(await store.get("a").orThrow()).toBeUndefined();
    expect((await store.create("a", text("four"))).isOk()).toBe(true);
  });

  it("of every size come back whole, and cost no more than themselves", async () => {
    const { open, stream, name } = await makeStore(streams);
    const store = open(link);
    for (const size of [0, 1, 262_143, 262_144, 262_145, 3 * 262_144, 5_000_000]) {
      const bytes = pattern(size, size + 1);
      const info = await store.put("x", bytes).orThrow();
      expect(info).toMatchObject({ size, digest: digestOf(bytes) });
      const entry = await store.get("x").orThrow();
      expect(Buffer.compare((await entry?.bytes().orThrow()) ?? text("none"), bytes)).toBe(0);
      // What was replaced is gone.
      expect(Object.keys(await chunksOf(stream, name)).length).toBeLessThanOrEqual(1);
      expect(await usedBytes(stream)).toBeLessThan(size + 8_000);
    }
    await store.delete("x").orThrow();
    expect(await chunksOf(stream, name)).toEqual({});
    const { state } = await streams.manager.streams.info(stream);
    expect(state.messages).toBe(1);
    expect(state.consumer_count).toBe(0);
  });

  it("have pairs of text, kept exactly, whatever they hold; no header comes of them (C92)", async () => {
    const store = (await makeStore(streams)).open(link);
    const metadata = {
      crlf: "x\r\nEvil: 1",
      lf: "\n",
      nul: "\0",
      ünïcode: "Ünïcode 🦀",
      colon: "a: b: c",
      empty: "",
      large: "x".repeat(10 * 1024),
      padded: " padded ",
      "Nats-Rollup": "all",
    };
    await store.put("a", text("x"), { metadata }).orThrow();
    expect((await store.head("a").orThrow())?.metadata).toEqual(metadata);
    const bad = [
      { metadata: { n: 1 as never } },
      { metadata: { n: "x".repeat(40_000) } },
      { metadata: { n: "\ud800" } },
      { contentType: "text/plain\r\nEvil: 1" },
      { contentType: "" },
    ];
    for (const options of bad) {
      const result = await store.put("b", text("x"), options);
      expect(result.isErr() && result.error.type).toBe("ValidationError");
    }
    expect(await store.head("b").orThrow()).toBeUndefined();
  });
});

describe("keys of objects (C12)", () => {
  const names = [
    "a.b",
    "a_b",
    "dir/sub/file.txt",
    "../x",
    " leading space",
    "tab\tname",
    "🦀",
    "é",
    "e\u0301",
    "a",
    "ab",
    "abc",
    "x".repeat(255),
    "x".repeat(1_024),
    "*",
    ">",
    "$O.other.M.x",
  ];

  it("are kept byte for byte, and none is taken for another", async () => {
    const { open, name } = await makeStore(streams);
    const store = open(link);
    for (const key of names) await store.put(key, text(key)).orThrow();
    for (const key of names)
      expect(Buffer.from((await (await store.get(key).orThrow())?.bytes().orThrow()) ?? []).toString()).toBe(
        key,
      );
    const { items, cursor } = await store.list().orThrow();
    expect(items.map(({ key }) => key)).toEqual([...names].sort());
    expect(cursor).toBeUndefined();
    // Where NATS' own tools look for them.
    const raw = await streams.manager.streams.getMessage(`OBJ_${name}`, {
      last_by_subj: `$O.${name}.M.${Buffer.from("a.b").toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`,
    });
    expect(raw?.json()).toMatchObject({ name: "a.b", bucket: name, size: 3, chunks: 1 });
    for (const key of names) expect(await store.delete(key).orThrow()).toBe(true);
    expect((await store.list().orThrow()).items).toEqual([]);
  });

  it("that cannot be kept are refused at once", async () => {
    const store = (await makeStore(streams)).open(link);
    for (const key of ["", "\ud800", "x".repeat(1_025)]) {
      for (const result of [
        await store.get(key),
        await store.put(key, text("x")),
        await store.delete(key),
        await store.waitFor(key),
      ])
        expect(result.isErr() && result.error.type).toBe("ValidationError");
    }
  });

  it("of objects that other tools wrote are read and listed; damaged ones disturb nobody", async () => {
    const { open, name } = await makeStore(streams);
    const store = open(link);
    const bytes = pattern(300_000);
    const meta = (key: string, more: object) =>
      streams.admin.request(
        `$O.${name}.M.${encodeStoreKey(key)}`,
        JSON.stringify({ name: key, bucket: name, nuid: "NUID", size: 300_000, chunks: 3, ...more }),
      );
    for (let at = 0; at < 300_000; at += 131_072)
      await streams.admin.request(`$O.${name}.C.NUID`, bytes.subarray(at, Math.min(at + 131_072, 300_000)));
    await meta("theirs", {
      digest: digestOf(bytes),
      mtime: "0001-01-01T00:00:00Z",
      options: { max_chunk_size: 131_072 },
    });
    await meta("damaged", { digest: digestOf(text("else")) });
    await meta("short", { digest: digestOf(bytes), nuid: "NONE" });
    await meta("link", { options: { link: { bucket: "other", name: "x" } } });
    await meta("odd", { digest: 5 });
    await streams.admin.request(`$O.${name}.M.${encodeStoreKey("garbage")}`, "{oops");
    await store.put("ours", text("x")).orThrow();
    const entry = await store.get("theirs").orThrow();
    expect(Buffer.compare((await entry?.bytes().orThrow()) ?? text(""), bytes)).toBe(0);
    for (const key of ["damaged", "short"]) {
      const result = await (await store.get(key).orThrow())?.bytes();
      expect(result?.isErr() && result.error).toMatchObject({ type: "StoreError", reason: "corrupt", key });
    }
    for (const key of ["link", "odd", "garbage"]) {
      const result = await store.head(key);
      expect(result.isErr() && result.error).toMatchObject({
        type: "StoreError",
        reason: "invalid_object",
        key,
      });
    }
    const page = await store.list().orThrow();
    expect(page.items.map(({ key }) => key)).toEqual(["damaged", "ours", "short", "theirs"]);
    expect(page.unreadable).toEqual(["garbage", "link", "odd"]);
    expect(await store.delete("garbage").orThrow()).toBe(true);
    await store.put("odd", text("y")).orThrow();
    expect((await store.list().orThrow()).unreadable).toEqual(["link"]);
  });
});

describe("sources (C44)", () => {
  const whole = pattern(700_000);
  const pieces = (size: number) =>
    Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
      whole.subarray(index * size, (index + 1) * size),
    );

  async function* reusing(): AsyncGenerator<Uint8Array> {
    const array = new Uint8Array(65_536);
    for (const piece of pieces(65_536)) {
      array.fill(0);
      array.set(piece);
      yield array.subarray(0, piece.length);
      await delay(0);
    }
    array.fill(255);
  }

  const shared = new Uint8Array(new SharedArrayBuffer(whole.length));
  shared.set(whole);
  const offset = new Uint8Array(whole.length + 100);
  offset.set(whole, 50);

  const sources: Readonly<Record<string, () => StoreSource>> = {
    "a subarray with an offset": () => offset.subarray(50, 50 + whole.length),
    "an array on shared memory": () => shared,
    "an ArrayBuffer": () => whole.slice().buffer,
    "a Blob": () => new Blob([whole]),
    "a File": () => new File([whole], "x"),
    "a Readable of Node": () => Readable.from(pieces(10_000)),
    "a web stream": () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          for (const piece of pieces(100_001)) controller.enqueue(piece);
          controller.close();
        },
      }) as globalThis.ReadableStream<Uint8Array>,
    "a web stream of bytes": () =>
      new ReadableStream({
        type: "bytes",
        start(controller) {
          for (const piece of pieces(100_001)) controller.enqueue(piece.slice());
          controller.close();
        },
      }) as globalThis.ReadableStream<Uint8Array>,
    "a generator that reuses its array": reusing,
    "a generator of small pieces": async function* () {
      for (const piece of pieces(777)) yield piece;
    },
  };

  it.each(Object.keys(sources))("%s is stored as it is", async (what) => {
    const store = (await makeStore(streams)).open(link);
    const source = sources[what]?.() ?? whole;
    const info = await store.put("x", source).orThrow();
    expect(info).toMatchObject({ size: whole.length, digest: digestOf(whole) });
    expect(
      Buffer.compare((await (await store.get("x").orThrow())?.bytes().orThrow()) ?? text(""), whole),
    ).toBe(0);
  });

  it("of Node's pool give their own bytes and nobody else's; changes afterwards do nothing", async () => {
    const store = (await makeStore(streams)).open(link);
    const pooled = Buffer.from("x");
    expect(pooled.buffer.byteLength).toBeGreaterThan(1);
    await store.put("x", pooled).orThrow();
    pooled[0] = 0;
    expect(await (await store.get("x").orThrow())?.bytes().orThrow()).toEqual(text("x"));
  });

  it("that are none are a TypeError at once", async () => {
    const store = (await makeStore(streams)).open(link);
    for (const source of ["text", 5, null, {}, [1, 2]])
      expect(() => store.put("x", source as never)).toThrow(TypeError);
    const words = await store.put("x", Readable.from(["text"]));
    expect(words.isErr() && words.error).toMatchObject({ type: "StoreError", reason: "source_failed" });
  });
});

describe("reading", () => {
  it("goes no faster than the reader, and can be broken off", async () => {
    const store = (await makeStore(streams)).open(link);
    const bytes = pattern(20_000_000);
    await store.put("x", bytes).orThrow();
    const entry = await store.get("x").orThrow();
    const before = link.nats.stats().inBytes;
    const reader = entry?.stream().getReader();
    await reader?.read();
    await delay(200);
    expect(link.nats.stats().inBytes - before).toBeLessThan(8_000_000);
    await reader?.cancel();
    expect(link.requests.size).toBeLessThanOrEqual(2);
    const hash = createHash("sha256");
    for await (const piece of entry?.stream() ?? []) hash.update(piece);
    expect(encodeObjectDigest(hash.digest())).toBe(entry?.info.digest);
  });

  it("what is replaced or deleted meanwhile ends by name", async () => {
    const store = (await makeStore(streams)).open(link);
    for (const change of [() => store.put("x", text("new")).orThrow(), () => store.delete("x").orThrow()]) {
      await store.put("x", pattern(20_000_000)).orThrow();
      const reader = (await store.get("x").orThrow())?.stream().getReader();
      await reader?.read();
      await change();
      const rest = (async () => {
        for (;;) if ((await reader?.read())?.done !== false) return;
      })();
      await expect(rest).rejects.toMatchObject({ type: "StoreError", reason: "replaced" });
    }
  });

  it("what is damaged never passes for whole", async () => {
    const { open, stream, name } = await makeStore(streams);
    const store = open(link);
    await store.put("x", pattern(1_000_000)).orThrow();
    const [chunks] = Object.keys(await chunksOf(stream, name));
    await streams.manager.streams.purge(stream, { filter: chunks ?? "", keep: 3 });
    const result = await (await store.get("x").orThrow())?.bytes();
    expect(result?.isErr() && result.error).toMatchObject({ type: "StoreError", reason: "corrupt" });
  });
});

describe("listings", () => {
  it("are pages in the order of keys, each object once", async () => {
    const store = (await makeStore(streams)).open(link);
    const keys = Array.from({ length: 1_230 }, (_, index) => `dir/${(index * 7_919) % 1_230}`);
    for (let at = 0; at < keys.length; at += 50)
      await Promise.all(keys.slice(at, at + 50).map((key) => store.put(key, text(key)).orThrow()));
    await store.put("aaa", text("x")).orThrow();
    await store.put("zzz", text("x")).orThrow();
    const listed: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await store
        .list({ prefix: "dir/", limit: 500, ...(cursor !== undefined && { cursor }) })
        .orThrow();
      listed.push(...page.items.map(({ key }) => key));
      cursor = page.cursor;
      pages += 1;
    } while (cursor !== undefined);
    expect(pages).toBe(3);
    expect(listed).toEqual([...keys].sort());
    expect((await store.list().orThrow()).items).toHaveLength(100);
    expect((await store.list({ limit: 1 }).orThrow()).items[0]?.key).toBe("aaa");
    expect((await store.list({ prefix: "none" }).orThrow()).items).toEqual([]);
  });

  it("take their own cursors only, and no more than 500", async () => {
    const store = (await makeStore(streams)).open(link);
    for (const key of ["a/1", "a/2", "b"]) await store.put(key, text("x")).orThrow();
    const { cursor } = await store.list({ prefix: "a/", limit: 1 }).orThrow();
    expect(
      (await store.list({ prefix: "a/", cursor: cursor ?? "" }).orThrow()).items.map(({ key }) => key),
    ).toEqual(["a/2"]);
    for (const options of [{ cursor: cursor ?? "" }, { prefix: "a/", cursor: "garbage" }]) {
      const result = await store.list(options);
      expect(result.isErr() && result.error).toMatchObject({ type: "StoreError", reason: "invalid_cursor" });
    }
    for (const limit of [0, 501, 1.5, -1]) expect((await store.list({ limit })).isErr()).toBe(true);
  });
});

describe("waiting", () => {
  it("ends at once for what is there, and soon after it comes", async () => {
    const store = (await makeStore(streams)).open(link);
    await store.put("here", text("x")).orThrow();
    expect((await store.waitFor("here").orThrow()).size).toBe(1);
    const waiting = store.waitFor("later", { timeout: 5_000 });
    await delay(50);
    await store.put("other", text("x")).orThrow();
    const started = performance.now();
    await store.put("later", text("xyz")).orThrow();
    expect((await waiting.orThrow()).size).toBe(3);
    expect(performance.now() - started).toBeLessThan(500);
  });

  it("ends by its time and by its signal", async () => {
    const store = (await makeStore(streams)).open(link);
    await store.put("gone", text("x")).orThrow();
    await store.delete("gone").orThrow();
    const late = await store.waitFor("gone", { timeout: 100 });
    expect(late.isErr() && late.error.type).toBe("TimeoutError");
    const controller = new AbortController();
    const waiting = store.waitFor("never", { signal: controller.signal });
    controller.abort();
    const aborted = await waiting;
    expect(aborted.isErr() && aborted.error.type).toBe("CancelledError");
  });

  it("outlives a restart of the broker", async () => {
    const store = (await makeStore(streams)).open(link);
    const waiting = store.waitFor("x", { timeout: 15_000 });
    await delay(50);
    await streams.restart({ kill: true });
    await store.put("x", text("x"), { timeout: 10_000 }).orThrow();
    expect((await waiting.orThrow()).key).toBe("x");
  }, 30_000);
});

describe("limits", () => {
  it("of an object hold while its bytes flow: the source is not read to its end", async () => {
    const { open, stream, name } = await makeStore(streams, { maxObjectBytes: 1_000_000 });
    const store = open(link);
    let read = 0;
    let closed = false;
    async function* endless() {
      try {
        for (;;) {
          read += 100_000;
          yield pattern(100_000);
        }
      } finally {
        closed = true;
      }
    }
    const result = await store.put("x", endless());
    expect(result.isErr() && result.error).toMatchObject({
      type: "StoreError",
      reason: "too_large",
      key: "x",
    });
    expect(read).toBeLessThan(1_500_000);
    expect(closed).toBe(true);
    expect(await chunksOf(stream, name)).toEqual({});
    expect((await store.put("x", pattern(1_000_000))).isOk()).toBe(true);
    expect((await store.put("x", pattern(1_000_001))).isErr()).toBe(true);
    expect((await store.head("x").orThrow())?.size).toBe(1_000_000);
  });

  it("of the store are told by name, and leave nothing of the object", async () => {
    const { open, stream, name } = await makeStore(streams, { maxTotalBytes: 3_000_000 });
    const store = open(link);
    await store.put("a", pattern(2_000_000)).orThrow();
    const result = await store.put("b", pattern(2_000_000));
    expect(result.isErr() && result.error).toMatchObject({ type: "StoreError", reason: "store_full" });
    expect(Object.keys(await chunksOf(stream, name))).toHaveLength(1);
    expect((await (await store.get("a").orThrow())?.bytes())?.isOk()).toBe(true);
  });
});

describe("a store that is not there (C85)", () => {
  it("is an error by name for every operation, and is never made", async () => {
    const { open, stream } = await makeStore(streams);
    const store = open(link);
    expect((await store.probe()).isOk()).toBe(true);
    await streams.manager.streams.delete(stream);
    for (const result of await Promise.all([
      store.probe(),
      store.get("a"),
      store.put("a", text("x")),
      store.delete("a"),
      store.list(),
      store.waitFor("a"),
    ]))
      expect(result.isErr() && result.error).toMatchObject({ type: "StoreError", reason: "store_missing" });
    await expect(streams.manager.streams.info(stream)).rejects.toThrow();
  });
});
