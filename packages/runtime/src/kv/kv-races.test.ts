import { setTimeout as delay } from "node:timers/promises";
import { type FaultProxy, startFaultProxy } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Streams, startStreams } from "../jetstream/streams.test-kit.ts";
import { defineKv, makeBucket } from "./kv.test-kit.ts";

let streams: Streams;
beforeAll(async () => {
  streams = await startStreams();
});
afterAll(() => streams[Symbol.asyncDispose]());

async function proxied(): Promise<FaultProxy> {
  const proxy = await startFaultProxy({ target: streams.nats.url });
  onTestFinished(() => proxy.stop());
  return proxy;
}

const texts = defineKv({ value: Type.String() });

describe("create and delete by many at once (C27)", () => {
  it("have one holder at any time; the only error is that somebody holds it", async () => {
    const { open } = await makeBucket(streams, texts);
    const clients = 20;
    const rounds = 40;
    let holders = 0;
    let most = 0;
    let taken = 0;
    await Promise.all(
      Array.from({ length: clients }, async (_, client) => {
        const kv = open(await streams.link());
        for (let round = 0; round < rounds; ) {
          const created = await kv.create("lock", `${client}`);
          if (created.isErr()) {
            expect(created.error).toMatchObject({ type: "KVError", reason: "exists" });
            await delay(Math.random() * 4);
            continue;
          }
          holders += 1;
          most = Math.max(most, holders);
          taken += 1;
          round += 1;
          await delay(1);
          holders -= 1;
          (await kv.delete("lock", { revision: created.value.revision })).orThrow();
        }
      }),
    );
    expect(most).toBe(1);
    expect(taken).toBe(clients * rounds);
  }, 60_000);

  it("replace by many at once loses no update", async () => {
    const { open } = await makeBucket(streams, defineKv({ value: Type.Integer() }));
    const first = open(await streams.link());
    await first.put("n", 0).orThrow();
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const kv = open(await streams.link());
        for (let round = 0; round < 25; ) {
          const entry = await kv.get("n").orThrow();
          if (entry === undefined) throw new Error("gone");
          const replaced = await kv.replace("n", entry.value + 1, { revision: entry.revision });
          if (replaced.isOk()) round += 1;
          else expect(replaced.error).toMatchObject({ reason: "revision_mismatch" });
        }
      }),
    );
    expect((await first.get("n").orThrow())?.value).toBe(200);
  }, 30_000);
});

describe("a write whose answer is lost", () => {
  /** The request gets through, the answer does not. */
  async function losing(
    run: (
      kv: ReturnType<Awaited<ReturnType<typeof makeBucket<typeof texts.schemas.value>>>["open"]>,
    ) => PromiseLike<unknown>,
  ) {
    const proxy = await proxied();
    const { open } = await makeBucket(streams, texts);
    const link = await streams.link(`nats://${proxy.address}`);
    const direct = open(await streams.link());
    const { revision } = await direct.put("held", "before").orThrow();
    proxy.delay(150);
    const running = run(open(link));
    await delay(220);
    await proxy.refuse(true);
    proxy.cut();
    proxy.delay(0);
    const stored = { created: await direct.get("new").orThrow(), held: await direct.get("held").orThrow() };
    await proxy.refuse(false);
    const result = await running;
    await link.close();
    return { result, stored, direct, revision };
  }

  it("is found again when it was a create: the one who created it is told so", async () => {
    const { result, stored } = await losing((kv) => kv.create("new", "mine"));
    expect(stored.created?.value).toBe("mine");
    expect(result).toMatchObject({ ok: true, value: { key: "new", revision: stored.created?.revision } });
  });

  it("is found again when it was a replace or a checked delete", async () => {
    const replaced = await losing((kv) =>
      kv.get("held").andThen((entry) => kv.replace("held", "after", { revision: entry?.revision ?? 0 })),
    );
    expect(replaced.result).toMatchObject({ ok: true });
    expect((await replaced.direct.get("held").orThrow())?.value).toBe("after");
  });

  it("is an outcome that is not known when it was a put: nobody's later write is undone", async () => {
    const { result, stored } = await losing((kv) => kv.put("new", "mine"));
    expect(stored.created?.value).toBe("mine");
    expect(result).toMatchObject({ ok: false, error: { code: "trellis.jetstream.outcome_unknown" } });
  });

  it("waits for the socket within its deadline, and never goes out after it", async () => {
    const proxy = await proxied();
    const { open } = await makeBucket(streams, texts);
    const link = await streams.link(`nats://${proxy.address}`);
    const kv = open(link);
    await proxy.refuse(true);
    proxy.cut();
    await delay(50);
    const late = await kv.put("late", "x", { timeout: 200 });
    expect(late).toMatchObject({ ok: false, error: { type: "TimeoutError" } });
    const waiting = kv.put("in-time", "x", { timeout: 5_000 });
    const reading = kv.get("late", { timeout: 5_000 });
    await proxy.refuse(false);
    expect((await waiting).isOk()).toBe(true);
    expect(await reading.orThrow()).toBeUndefined();
    await delay(100);
    expect(await open(link).get("late").orThrow()).toBeUndefined();
    expect(link.requests.size).toBe(0);
    await link.close();
  });
});

describe("what the broker does not permit", () => {
  it("is told by name within a second, in place of a time-out", async () => {
    const guarded = await startStreams(`
authorization { users: [
  { user: admin, password: admin },
  { user: reader, password: reader, permissions: {
      publish: ["$JS.API.DIRECT.GET.>"], subscribe: ["_INBOX.>"] } }
] }
no_auth_user: admin
`);
    onTestFinished(() => guarded[Symbol.asyncDispose]());
    const { open } = await makeBucket(guarded, texts);
    const admin = open(await guarded.link());
    await admin.put("a", "x").orThrow();
    const kv = open(await guarded.link(guarded.nats.url, "reader"));
    expect((await kv.get("a").orThrow())?.value).toBe("x");
    const started = performance.now();
    expect(await kv.put("a", "y")).toMatchObject({ ok: false, error: { type: "AuthError" } });
    expect(await kv.create("b", "y")).toMatchObject({ ok: false, error: { type: "AuthError" } });
    await expect(kv.watch()[Symbol.asyncIterator]().next()).rejects.toMatchObject({ type: "AuthError" });
    expect(performance.now() - started).toBeLessThan(1_500);
  });
});
