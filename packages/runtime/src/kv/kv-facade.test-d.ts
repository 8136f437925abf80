import { defineService, kv, store } from "@trellis/contract";
import { Type } from "typebox";
import { describe, expectTypeOf, it } from "vitest";
import type { ObjectStore, StoreHandle } from "../store/store.ts";
import type { StoreFacade } from "../store/store-facade.ts";
import type { Kv } from "./kv.ts";
import type { KvChange, KvEntry } from "./kv-entry.ts";
import type { KvFacade } from "./kv-facade.ts";

const When = Type.Codec(Type.String())
  .Decode((text) => new Date(text))
  .Encode((date) => date.toISOString());
const participant = defineService("acme.shop", {
  kv: {
    carts: kv({ value: Type.Object({ items: Type.Integer() }), history: 3 }),
    dates: kv({ value: When }),
    cache: kv({ value: Type.String(), optional: true }),
  },
  store: { invoices: store({ maxObject: "1MiB" }), scans: store({ optional: true }) },
});
type P = typeof participant;
declare const buckets: KvFacade<P>;
declare const stores: StoreFacade<P>;

describe("service.kv", () => {
  it("has a typed bucket for each alias, and no other", () => {
    expectTypeOf<keyof KvFacade<P>>().toEqualTypeOf<"carts" | "dates" | "cache">();
    expectTypeOf(buckets.carts).toEqualTypeOf<Kv<{ items: number }, { items: number }>>();
    // @ts-expect-error: not declared
    void buckets.other;
    // @ts-expect-error: handles are not to be replaced
    buckets.carts = undefined as never;
  });

  it("may lack those that are optional, and only those", () => {
    expectTypeOf(buckets.cache).toEqualTypeOf<Kv<string, string> | undefined>();
    // @ts-expect-error: perhaps it is not bound
    void buckets.cache.get("a");
  });

  it("writes the input form and reads the output form", async () => {
    expectTypeOf(buckets.dates.put).parameter(1).toEqualTypeOf<string>();
    const entry = await buckets.dates.get("a").orThrow();
    expectTypeOf(entry).toEqualTypeOf<KvEntry<Date> | undefined>();
    // @ts-expect-error: no number
    void buckets.carts.put("a", { items: "many" });
    // @ts-expect-error: a replace names its revision
    void buckets.carts.replace("a", { items: 1 });
  });

  it("gives changes that are told apart by their kind", async () => {
    for await (const change of buckets.carts.watch()) {
      expectTypeOf(change).toEqualTypeOf<KvChange<{ items: number }>>();
      if (change.kind === "value") expectTypeOf(change.value.items).toBeNumber();
      else if (change.kind === "invalid") expectTypeOf(change.error.reason).toBeString();
      else if (change.kind === "deleted") expectTypeOf(change.revision).toBeNumber();
      // @ts-expect-error: the marker has no key
      else void change.key;
    }
    expectTypeOf(buckets.carts.keys("a/").collect().orThrow()).resolves.toEqualTypeOf<readonly string[]>();
  });
});

describe("service.store", () => {
  it("has a handle for each alias; optional ones may be missing", async () => {
    expectTypeOf(stores.invoices).toEqualTypeOf<StoreHandle>();
    expectTypeOf(stores.scans).toEqualTypeOf<StoreHandle | undefined>();
    const opened = await stores.invoices.open().orThrow();
    expectTypeOf(opened).toEqualTypeOf<ObjectStore>();
  });

  it("takes bytes in every form, and nothing else", () => {
    type Source = Parameters<ObjectStore["put"]>[1];
    expectTypeOf<Buffer>().toExtend<Source>();
    expectTypeOf<Blob>().toExtend<Source>();
    expectTypeOf<File>().toExtend<Source>();
    expectTypeOf<import("node:stream").Readable>().toExtend<Source>();
    expectTypeOf<AsyncGenerator<Uint8Array>>().toExtend<Source>();
    expectTypeOf<string>().not.toExtend<Source>();
    expectTypeOf<number[]>().not.toExtend<Source>();
  });
});
