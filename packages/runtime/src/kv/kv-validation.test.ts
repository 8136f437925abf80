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

async function bucketOf<S extends Parameters<typeof defineKv>[0]["value"]>(value: S) {
  const made = await makeBucket(streams, defineKv({ value: value as ReturnType<typeof Type.Unknown> }));
  return { ...made, bucket: made.open(link) };
}

describe("values of a bucket", () => {
  it("C30: are as long as they have code points", async () => {
    const { bucket } = await bucketOf(Type.String({ minLength: 4, maxLength: 4 }));
    for (const text of ["abcd", "😀😀😀😀", "e\u0301e\u0301"]) await bucket.put("k", text).orThrow();
    for (const text of ["abcde", "😀😀", "é".repeat(3), "👨‍👩‍👧"])
      expect((await bucket.put("k", text)).isErr(), text).toBe(true);
    expect((await bucket.put("k", "\ud800abc")).isErr()).toBe(true);
  });

  it("C32: that JSON cannot carry are refused with their place, and nothing is stored", async () => {
    const { bucket, subject } = await bucketOf(Type.Unknown());
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const wrong: Record<string, unknown> = {
      NaN: Number.NaN,
      infinity: Number.POSITIVE_INFINITY,
      bigint: 10n,
      date: new Date(0),
      map: new Map(),
      set: new Set(),
      bytes: new Uint8Array(2),
      function: () => 1,
      symbol: Symbol("x"),
      hole: [undefined],
      cycle,
    };
    for (const [name, value] of Object.entries(wrong)) {
      const put = await bucket.put("k", { at: value });
      expect(put.isErr() && put.error.type, name).toBe("ValidationError");
      if (put.isErr() && put.error.type === "ValidationError")
        expect(put.error.errors[0]?.path, name).toMatch(/^\/at/);
    }
    expect((await bucket.put("k", undefined)).isErr()).toBe(true);
    const { state } = await streams.manager.streams.info(`KV_${subject.slice("$KV.".length)}`);
    expect(state.messages).toBe(0);
    await bucket.put("k", { zero: -0, left: undefined, big: 2 ** 53 }).orThrow();
    expect((await bucket.get("k").orThrow())?.value).toEqual({ zero: -0, big: 2 ** 53 });
  });

  it("C33: named like a prototype pollute nothing, written or read", async () => {
    const { bucket, subject } = await bucketOf(Type.Unknown());
    const evil: unknown = JSON.parse('{"__proto__":{"admin":true}}');
    expect((await bucket.put("k", evil)).isErr()).toBe(true);
    await bucket.put("inert", { constructor: { prototype: { admin: true } } }).orThrow();
    await streams.admin.request(`${subject}.raw`, '{"deep":[{"\\u005f_proto__":{"admin":true}}]}');
    const read = await bucket.get("raw");
    expect(read.isErr() && read.error).toMatchObject({ type: "KVError", reason: "invalid_value" });
    expect((await bucket.get("inert").orThrow())?.value).toEqual({
      constructor: { prototype: { admin: true } },
    });
    expect("admin" in {}).toBe(false);
  });

  it("C89: of money are multiples of a hundredth", async () => {
    const { bucket } = await bucketOf(Type.Number({ multipleOf: 0.01 }));
    for (const amount of [143.47, 143.48, 0.07, 4.35, 1e20]) await bucket.put("k", amount).orThrow();
    expect((await bucket.put("k", 0.075)).isErr()).toBe(true);
  });

  it("C91: keep what a newer writer added to an open object; a closed one refuses it with its place", async () => {
    const item = Type.Object({ id: Type.String() });
    const open = await bucketOf(Type.Object({ items: Type.Array(item) }));
    const extra = { items: [{ id: "a", note: "new" }], total: 3 };
    await open.bucket.put("k", extra).orThrow();
    expect((await open.bucket.get("k").orThrow())?.value).toEqual(extra);
    const union = await bucketOf(
      Type.Union([Type.Object({ a: Type.String() }), Type.Object({ a: Type.String(), b: Type.String() })]),
    );
    await union.bucket.put("k", { a: "1", b: "2" }).orThrow();
    expect((await union.bucket.get("k").orThrow())?.value).toEqual({ a: "1", b: "2" });
    const closed = await bucketOf(Type.Object({ a: Type.String() }, { additionalProperties: false }));
    const refused = await closed.bucket.put("k", { a: "1", b: "2" });
    expect(refused.isErr() && refused.error.type === "ValidationError" && refused.error.errors[0]?.path).toBe(
      "/b",
    );
  });
});
