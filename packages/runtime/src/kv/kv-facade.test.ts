import { kv, store } from "@trellis/contract";
import type { KvBinding, StoreBinding } from "@trellis/protocol";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Streams, startStreams, type TestLink } from "../jetstream/streams.test-kit.ts";
import type { StoreHandle } from "../store/store.ts";
import { storeFacade } from "../store/store-facade.ts";
import type { Kv } from "./kv.ts";
import { kvFacade } from "./kv-facade.ts";

let streams: Streams;
let link: TestLink;
beforeAll(async () => {
  streams = await startStreams();
  link = await streams.link();
});
afterAll(() => streams[Symbol.asyncDispose]());

const limits = { history: 1, ttlMs: null, maxValueBytes: null };

describe("the facades", () => {
  it("follow the bindings: what is bound later appears, what leads elsewhere is another handle", async () => {
    await streams.addBucket("one");
    await streams.addBucket("two");
    let bound: Record<string, KvBinding> = {};
    const resources = {
      carts: kv({ value: Type.Integer() }),
      cache: kv({ value: Type.Integer(), optional: true }),
    };
    const facade = kvFacade({
      link,
      requests: link.requests,
      timeoutMs: 2_000,
      resources,
      bindings: () => bound,
    }) as {
      carts: Kv<number, number>;
      cache: Kv<number, number> | undefined;
      toString: unknown;
    };
    expect(Object.keys(facade)).toEqual(["carts", "cache"]);
    expect(facade.cache).toBeUndefined();
    bound = { carts: { bucket: "one", watch: "kvw.v1.one", ...limits } };
    const { carts } = facade;
    await carts.put("a", 1).orThrow();
    bound = { ...bound, carts: { bucket: "one", watch: "kvw.v1.one", ...limits } };
    expect(facade.carts).toBe(carts);
    expect(facade.cache).toBeUndefined();
    bound = {
      carts: { bucket: "two", watch: "kvw.v1.two", ...limits },
      cache: { bucket: "one", watch: "kvw.v1.one", ...limits },
    };
    expect(facade.carts).not.toBe(carts);
    expect(await facade.carts.get("a").orThrow()).toBeUndefined();
    expect((await facade.cache?.get("a").orThrow())?.value).toBe(1);
  });

  it("open stores that answer, and say so of those that do not", async () => {
    await streams.addStore("files");
    const binding = (name: string): StoreBinding => ({
      name,
      ttlMs: null,
      maxObjectBytes: null,
      maxTotalBytes: null,
      watch: `objw.v1.${name}`,
    });
    const resources = { files: store(), lost: store(), unbound: store({ optional: true }) };
    const bindings = () => ({ files: binding("files"), lost: binding("nowhere") });
    const facade = storeFacade({ link, requests: link.requests, timeoutMs: 2_000, resources, bindings }) as {
      files: StoreHandle;
      lost: StoreHandle;
      unbound: StoreHandle | undefined;
    };
    const files = await facade.files.open().orThrow();
    expect((await files.put("a", new Uint8Array(3)).orThrow()).size).toBe(3);
    const lost = await facade.lost.open();
    expect(lost.isErr() && lost.error).toMatchObject({ type: "StoreError", reason: "store_missing" });
    expect(facade.unbound).toBeUndefined();
    expect(facade.files).toBe(facade.files);
  });
});
