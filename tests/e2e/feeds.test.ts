import { defineApi, defineApp, defineError, defineService, feed, rpc, use } from "@trellis/contract";
import {
  BusyError,
  CancelledError,
  type ConnectedClient,
  FeedError,
  UnavailableError,
  UnexpectedError,
  ValidationError,
} from "@trellis/runtime";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

const Closed = defineError("Closed", { data: Type.Object({ at: Type.Integer() }) });
const Count = Type.Object({ to: Type.Integer(), then: Type.Optional(Type.String()) });
const live = defineApi("acme.live@v1", {
  feeds: {
    "Live.Count": feed({ input: Count, event: Type.Integer(), errors: [Closed] }),
    /** Gives one item, then nothing for ever. */
    "Live.Quiet": feed({ event: Type.String() }),
    "Live.Flood": feed({ input: Type.Object({ wait: Type.Boolean() }), event: Type.String() }),
    "Live.Texts": feed({ input: Type.Integer(), event: Type.String() }),
    /** A feed over a feed. */
    "Live.Doubled": feed({ input: Count, event: Type.Integer() }),
  },
});
const liveService = defineService("acme.live-service", { implements: [live], uses: [use(live)] });
const viewer = defineApp("acme.viewer", { uses: [use(live)] });
const relay = defineApi("acme.relay@v1", {
  rpc: {
    "Relay.Sum": rpc({ input: Type.Integer(), output: Type.Tuple([Type.Integer(), Type.String()]) }),
    "Relay.Watch": rpc({ output: Type.String() }),
  },
});
const relayService = defineService("acme.relay-service", { implements: [relay], uses: [use(live)] });
const relayApp = defineApp("acme.relay-app", { uses: [use(relay)] });

let trellis: TestTrellis;
let client: ConnectedClient<typeof viewer>;
/** Quiet producers that run, and what ended the others. */
let quiet = 0;
const ends: unknown[] = [];
/** How far the flood has come. */
let flooded = 0;
const requestIds: string[] = [];
const around: string[] = [];

beforeAll(async () => {
  trellis = await startTrellis();
  await trellis.service(liveService, (service) => {
    const { feed: feeds } = service.handle;
    service.use((call, next) => {
      around.push(call.name);
      return next();
    });
    feeds.live.count(async ({ input, context, emit }) => {
      requestIds.push(context.requestId);
      for (let n = 1; n <= input.to; n += 1) await emit(n);
      if (input.then === "declared") throw new Closed({ data: { at: input.to } });
      if (input.then === "bug") throw new Error("a secret of the provider");
      if (input.then === "unfit") await emit(0.5);
      return input.then === "returned" ? new Closed({ data: { at: input.to } }) : undefined;
    });
    feeds.live.quiet(async ({ emit, signal, context }) => {
      quiet += 1;
      try {
        await emit(context.caller.participant.id);
        // Parked: only its signal can wake it.
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      } finally {
        quiet -= 1;
        ends.push(signal.reason);
      }
    });
    feeds.live.flood(async ({ input, emit, signal }) => {
      for (flooded = 0; !signal.aborted; flooded += 1) {
        const sent = emit("x".repeat(128));
        if (input.wait) await sent;
        else if (flooded % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    });
    feeds.live.texts(async ({ input, emit }) => {
      await emit("first");
      await emit("x".repeat(input));
    });
    feeds.live.doubled(async ({ input, emit, client: inner }) => {
      for await (const n of inner.feed.live.count(input)) await emit(2 * n);
    });
  });
  client = await trellis.client(viewer);
});
afterAll(() => trellis?.stop());
beforeEach(async () => {
  await eventually(() => expect(quiet).toBe(0));
  ends.length = 0;
  requestIds.length = 0;
  around.length = 0;
});

/** Everything that a feed gives, and what its loop threw. */
async function drain<T>(stream: AsyncIterable<T>): Promise<{ items: T[]; error: unknown }> {
  const items: T[] = [];
  try {
    for await (const item of stream) items.push(item);
    return { items, error: undefined };
  } catch (error) {
    return { items, error };
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe("a feed", () => {
  it("gives every item in order, then ends", async () => {
    const stream = client.feed.live.count({ to: 20_000 });
    expect(await drain(stream)).toEqual({ items: upTo(20_000), error: undefined });
    expect((await stream.ended).isOk()).toBe(true);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it("is opened when its first item is asked for, and never when it is left before", async () => {
    const stream = client.feed.live.count({ to: 3 });
    const left = client.feed.live.quiet();
    await left.return();
    expect(await left.next()).toEqual({ done: true, value: undefined });
    expect((await left.ended).isOk()).toBe(true);
    expect(around).toEqual([]);
    expect(await stream.next()).toEqual({ done: false, value: 1 });
    expect(around).toEqual(["Live.Count"]);
    await stream.return();
  });

  it.each(["declared", "returned"])(
    "ends with a declared error that the producer gave (%s), after its items",
    async (then) => {
      const stream = client.feed.live.count({ to: 300, then });
      const { items, error } = await drain(stream);
      expect(items).toEqual(upTo(300));
      expect(error).toBeInstanceOf(Closed);
      const ended = await stream.ended;
      if (ended.isOk() || ended.error.kind !== "declared") throw new Error("not the declared error");
      expect(ended.error.data.at).toBe(300);
    },
  );

  it("ends with an id where the producer has a bug or gives what does not fit; the text stays at home", async () => {
    for (const then of ["bug", "unfit"]) {
      const { items, error } = await drain(client.feed.live.count({ to: 2, then }));
      expect(items).toEqual([1, 2]);
      expect(error).toBeInstanceOf(UnexpectedError);
      expect(JSON.stringify(error)).not.toMatch(/secret|0\.5/);
    }
  });

  it("refuses an input that does not fit, before anything is sent", async () => {
    const { error } = await drain(client.feed.live.count({ to: 0.5 }));
    expect(error).toBeInstanceOf(ValidationError);
    expect(error).toMatchObject({ errors: [{ path: "/to" }] });
    expect(around).toEqual([]);
  });

  it("carries items up to the broker's limit, and ends with both sizes beyond it", async () => {
    const limit = 1024 * 1024;
    const { items } = await drain(client.feed.live.texts(limit - 200));
    expect(items.map(({ length }) => length)).toEqual([5, limit - 200]);
    const { items: few, error } = await drain(client.feed.live.texts(limit));
    expect(few).toEqual(["first"]);
    expect(error).toMatchObject({ type: "TransportError", code: "trellis.feed.item_too_large" });
    expect(String(error)).toMatch(/1048578 bytes, the limit is \d+/);
  });

  it("goes through the middleware of its service", async () => {
    await drain(client.feed.live.count({ to: 1 }));
    expect(around).toEqual(["Live.Count"]);
  });

  it("shows its producer who reads it", async () => {
    const stream = client.feed.live.quiet();
    expect((await stream.next()).value).toBe("acme.viewer");
    await stream.return();
  });
});

describe("a consumer that leaves", () => {
  async function expectFreed(reason: object): Promise<void> {
    await eventually(() => expect(quiet).toBe(0), { timeout: 1_000 });
    expect(ends).toEqual([expect.objectContaining(reason)]);
  }

  it("by break", async () => {
    for await (const _ of client.feed.live.quiet()) break;
    await expectFreed({ type: "CancelledError" });
  });

  it("by a throw in its loop", async () => {
    const read = async () => {
      for await (const _ of client.feed.live.quiet()) throw new Error("of the application");
    };
    await expect(read()).rejects.toThrow("of the application");
    await expectFreed({ type: "CancelledError" });
  });

  it("by return, also while the next item is waited for", async () => {
    const stream = client.feed.live.quiet();
    await stream.next();
    const parked = stream.next();
    await stream.return();
    expect(await parked).toEqual({ done: true, value: undefined });
    await expectFreed({ type: "CancelledError" });
  });

  it("by the end of its scope", async () => {
    {
      await using stream = client.feed.live.quiet();
      await stream.next();
    }
    await expectFreed({ type: "CancelledError" });
  });

  it("by its signal: the loop throws at once", async () => {
    const leaving = new AbortController();
    const stream = client.feed.live.quiet(undefined, { signal: leaving.signal });
    await stream.next();
    const parked = stream.next();
    leaving.abort(new Error("enough"));
    await expect(parked).rejects.toMatchObject({ type: "CancelledError", reason: "aborted" });
    const ended = await stream.ended;
    expect(ended.isErr() && ended.error.cause).toMatchObject({ message: "enough" });
    await expectFreed({ type: "CancelledError" });
  });

  it("by a signal that had aborted before", async () => {
    const { error } = await drain(client.feed.live.quiet(undefined, { signal: AbortSignal.abort() }));
    expect(error).toBeInstanceOf(CancelledError);
    expect(around).toEqual([]);
  });

  it("by closing its connection", async () => {
    const other = await trellis.client(viewer);
    const stream = other.feed.live.quiet();
    await stream.next();
    const parked = stream.next();
    const rejected = expect(parked).rejects.toMatchObject({ type: "CancelledError", reason: "stopped" });
    await other.close();
    await rejected;
    await expectFreed({ type: "CancelledError" });
    const { error } = await drain(other.feed.live.quiet());
    expect(error).toMatchObject({ type: "UnavailableError", reason: "closed" });
  });

  it("200 times, in each way, leaves nothing behind", async () => {
    const ways: ((leaving: AbortController) => Promise<void>)[] = [
      async () => {
        for await (const _ of client.feed.live.quiet()) break;
      },
      async (leaving) => {
        const stream = client.feed.live.quiet(undefined, { signal: leaving.signal });
        await stream.next();
        const parked = stream.next();
        leaving.abort();
        await parked.catch(() => {});
      },
      async () => {
        // Left while it is being opened.
        const stream = client.feed.live.quiet();
        const first = stream.next();
        await stream.return();
        await first;
      },
    ];
    await Promise.all(
      Array.from({ length: 200 }, async (_, round) => ways[round % ways.length]?.(new AbortController())),
    );
    await eventually(() => expect(quiet).toBe(0), { timeout: 2_000 });
  });
});

describe("inside a handler", () => {
  it("a feed inherits the request's id, and its end", async () => {
    await trellis.service(relayService, ({ handle }) => {
      handle.rpc.relay.sum(async ({ input, context, client: inner }) => {
        let sum = 0;
        for await (const n of inner.feed.live.count({ to: input })) sum += n;
        return [sum, context.requestId];
      });
      handle.rpc.relay.watch(async ({ client: inner }) => {
        for await (const _ of inner.feed.live.quiet());
        return "never";
      });
    });
    const app = await trellis.client(relayApp);
    const [sum, request] = await app.rpc.relay.sum(100).orThrow();
    expect(sum).toBe(5_050);
    expect(requestIds).toEqual([request]);
    const leaving = new AbortController();
    const watching = app.rpc.relay.watch(undefined, { signal: leaving.signal });
    await eventually(() => expect(quiet).toBe(1));
    leaving.abort();
    expect((await watching).isErr()).toBe(true);
    await eventually(() => expect(quiet).toBe(0), { timeout: 1_000 });
    // The deadline of the request ends it as well.
    expect((await app.rpc.relay.watch(undefined, { timeout: 300 })).isErr()).toBe(true);
    await eventually(() => expect(quiet).toBe(0), { timeout: 2_000 });
  });

  it("a producer reads another feed, and leaves it when it is left", async () => {
    const { items } = await drain(client.feed.live.doubled({ to: 1_000 }));
    expect(items).toEqual(upTo(1_000).map((n) => 2 * n));
    expect(requestIds.length).toBe(1);
    for await (const n of client.feed.live.doubled({ to: 1_000_000 })) if (n === 20) break;
  });
});

describe("flow control", () => {
  it("holds a producer that waits to what the window takes, until its consumer goes on", async () => {
    const stream = client.feed.live.flood({ wait: true });
    await stream.next();
    let before = -1;
    await eventually(
      () => {
        const [was, is] = [before, flooded];
        before = is;
        expect(is).toBe(was);
      },
      { interval: 100 },
    );
    // 64 frames of at most 256 items, one frame that waits for credit, and the first item on its own.
    expect(flooded).toBeLessThanOrEqual(66 * 256);
    for (let read = 0; read < 40_000; read += 1) await stream.next();
    expect(flooded).toBeGreaterThan(40_000);
    await stream.return();
  });

  it("ends the session of a producer that does not wait, once it is too far ahead", async () => {
    const stream = client.feed.live.flood({ wait: false });
    await stream.next();
    const ended = await stream.ended;
    expect(ended.isErr() && ended.error).toBeInstanceOf(FeedError);
    expect(ended.isErr() && ended.error).toMatchObject({ reason: "consumer_slow" });
    // What had arrived is still there, then the loop throws.
    const { items, error } = await drain(stream);
    expect(items.length).toBeGreaterThan(100);
    expect(error).toMatchObject({ type: "FeedError", reason: "consumer_slow" });
  });
});

describe("a service", () => {
  const solo = defineApi("acme.solo@v1", { feeds: { Solo: feed({ event: Type.Integer() }) } });
  const soloService = defineService("acme.solo-service", { implements: [solo] });
  const soloApp = defineApp("acme.solo-app", { uses: [use(solo)] });
  const parked = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

  it("names feeds without a producer, with the line to write", async () => {
    const starting = trellis.service(soloService, (service) =>
      expect(() => service.start({ strict: true })).rejects.toThrow(
        "service.handle.feed.solo.solo(async ({ input, emit }) => ...)",
      ),
    );
    await Promise.allSettled([starting]);
  });

  it("nobody provides: the feed ends with no_responders", async () => {
    const none = await trellis.client(soloApp, { runtime: { noResponderRetry: false } });
    const { error } = await drain(none.feed.solo.solo());
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ reason: "no_responders" });
  });

  it("turns sessions away beyond its limits, and takes them again when others have ended", async () => {
    const provider = await trellis.service(
      soloService,
      ({ handle }) =>
        handle.feed.solo.solo(async ({ emit, signal }) => {
          await emit(1);
          await parked(signal);
        }),
      { runtime: { feeds: { maxSessions: 3, maxSessionsPerCaller: 2 } } },
    );
    const [one, two] = [await trellis.client(soloApp), await trellis.client(soloApp)];
    const streams = [one.feed.solo.solo(), one.feed.solo.solo(), two.feed.solo.solo()] as const;
    for (const stream of streams) await stream.next();
    for (const caller of [one, two]) {
      const full = caller.feed.solo.solo(undefined, { timeout: 400 });
      expect((await drain(full)).error).toSatisfy(
        (error) => error instanceof BusyError || (error as Error).name === "TimeoutError",
      );
    }
    await streams[2].return();
    expect((await two.feed.solo.solo().next()).value).toBe(1);
    await provider.stop();
    const ended = await streams[0].ended;
    expect(ended.isErr() && ended.error).toMatchObject({ type: "FeedError", reason: "stopped" });
  });

  it("that stops tells its consumers, aborts its producers, and waits for them", async () => {
    const returned: string[] = [];
    const provider = await trellis.service(soloService, ({ handle }) =>
      handle.feed.solo.solo(async ({ emit, signal }) => {
        await emit(1);
        await parked(signal);
        await expect(emit(2)).rejects.toMatchObject({ type: "CancelledError", reason: "stopped" });
        returned.push("after its signal");
      }),
    );
    const app = await trellis.client(soloApp);
    const stream = app.feed.solo.solo();
    await stream.next();
    const next = expect(stream.next()).rejects.toMatchObject({ type: "FeedError", reason: "stopped" });
    await provider.stop();
    await next;
    expect(returned).toEqual(["after its signal"]);
  });
});
