import { trace } from "@opentelemetry/api";
import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import { nodePlatform } from "@trellis/runtime/node";
import { eventually, startFaultProxy, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workApp, workService } from "./contract.ts";
import { nothingDone, pause, plainHandlers, timed, typeName } from "./kit.ts";
import { RecordingTracerProvider } from "./recording-tracer.ts";

const hop = () =>
  rpc({ input: Type.Object({ ms: Type.Number() }), output: Type.Object({ by: Type.String() }) });
const first = defineApi("faults.first@v1", { rpc: { "First.Go": hop() } });
const second = defineApi("faults.second@v1", { rpc: { "Second.Go": hop() } });
const third = defineApi("faults.third@v1", { rpc: { "Third.Go": hop() } });
const firstService = defineService("faults.first-service", { implements: [first], uses: [use(second)] });
const secondService = defineService("faults.second-service", { implements: [second], uses: [use(third)] });
const thirdService = defineService("faults.third-service", { implements: [third] });
const chainApp = defineApp("faults.chain-app", { uses: [use(first)] });

interface Hop {
  readonly at: "first" | "second" | "third";
  readonly remaining: number;
  readonly requestId: string;
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  readonly signal: AbortSignal;
}

async function startChain(trellis: TestTrellis) {
  const hops: Hop[] = [];
  const note = (at: Hop["at"], { deadline, requestId, trace: traced, signal }: HopContext) =>
    hops.push({
      at,
      remaining: deadline.remaining(),
      requestId,
      traceparent: traced?.traceparent,
      tracestate: traced?.tracestate,
      signal,
    });
  await trellis.service(thirdService, ({ handle }) =>
    handle.rpc.third.go(async ({ input, context }) => {
      note("third", context);
      await pause(input.ms, context.signal);
      return { by: "third" };
    }),
  );
  await trellis.service(secondService, ({ handle }) =>
    handle.rpc.second.go(async ({ input, context, client }) => {
      note("second", context);
      await pause(20);
      // A longer time than there is left: what is left counts.
      return client.rpc.third.go(input, { timeout: 60_000 }).orThrow();
    }),
  );
  await trellis.service(firstService, ({ handle }) =>
    handle.rpc.first.go(async ({ input, context, client }) => {
      note("first", context);
      if (input.ms < 0) await pause(-input.ms);
      else await pause(20);
      return client.rpc.second.go(input).orThrow();
    }),
  );
  const client = await trellis.client(chainApp);
  return { hops, client };
}

interface HopContext {
  readonly deadline: { remaining(): number };
  readonly requestId: string;
  readonly trace: { readonly traceparent: string; readonly tracestate?: string } | undefined;
  readonly signal: AbortSignal;
}

describe("a chain of three services", () => {
  let trellis: TestTrellis;
  let chain: Awaited<ReturnType<typeof startChain>>;
  const tracing = new RecordingTracerProvider();
  beforeAll(async () => {
    trellis = await startTrellis();
    chain = await startChain(trellis);
  });
  afterAll(async () => {
    trace.disable();
    await trellis.stop();
  });
  const go = (ms: number, options: { timeout?: number; signal?: AbortSignal } = {}) => {
    chain.hops.length = 0;
    return chain.client.rpc.first.go({ ms }, options);
  };
  const reached = () => chain.hops.map(({ at }) => at);

  it("passes on the time that is left and the id of the request", async () => {
    expect((await go(10, { timeout: 5_000 })).orThrow().by).toBe("third");
    expect(reached()).toEqual(["first", "second", "third"]);
    const [a, b, c] = chain.hops;
    expect(a?.remaining).toBeLessThanOrEqual(5_000);
    expect(b?.remaining).toBeLessThanOrEqual((a?.remaining ?? 0) - 15);
    expect(c?.remaining).toBeLessThanOrEqual((b?.remaining ?? 0) - 15);
    expect(c?.remaining).toBeGreaterThan(4_000);
    expect(a?.requestId).toMatch(/^[0-9a-f]{32}$/);
    expect(new Set(chain.hops.map(({ requestId }) => requestId)).size).toBe(1);
  });

  it("is cancelled to its end when the first caller leaves", async () => {
    const leaving = new AbortController();
    const call = go(20_000, { signal: leaving.signal });
    await eventually(() => reached().includes("third"));
    leaving.abort();
    const result = await call;
    expect(result.isErr() && result.error.type).toBe("CancelledError");
    await eventually(() => chain.hops.every(({ signal }) => signal.aborted), { timeout: 1_000 });
    expect(chain.hops.map(({ signal }) => typeName(signal.reason))).toEqual(Array(3).fill("CancelledError"));
  });

  it("ends with the first caller's deadline, in every hop", async () => {
    const { ms, value } = await timed(() => go(20_000, { timeout: 400 }));
    expect(value.isErr() && value.error.type).toBe("TimeoutError");
    expect(ms).toBeLessThan(700);
    expect(reached()).toEqual(["first", "second", "third"]);
    await eventually(() => chain.hops.every(({ signal }) => signal.aborted), { timeout: 1_000 });
  });

  it("does not go on to the next hop once the time is up", async () => {
    const result = await go(-600, { timeout: 200 });
    expect(result.isErr() && result.error.type).toBe("TimeoutError");
    await eventually(() => chain.hops.every(({ signal }) => signal.aborted));
    await pause(600);
    expect(reached()).toEqual(["first"]);
  });

  it("is one trace, each span below the one that called it", async () => {
    trace.setGlobalTracerProvider(tracing);
    expect((await go(0)).isOk()).toBe(true);
    await eventually(() => tracing.spans.length === 6 && tracing.spans.every(({ ended }) => ended));
    const names = [
      "client.First.Go",
      "server.First.Go",
      "client.Second.Go",
      "server.Second.Go",
      "client.Third.Go",
      "server.Third.Go",
    ];
    expect(tracing.spans.map(({ name }) => name)).toEqual(names.map((name) => `rpc.${name}`));
    expect(new Set(tracing.spans.map(({ spanContext }) => spanContext.traceId)).size).toBe(1);
    for (const [at, span] of tracing.spans.entries())
      expect(span.parent?.spanId).toBe(tracing.spans[at - 1]?.spanContext.spanId);
    // What a handler is told is its own span.
    for (const [at, { traceparent, tracestate }] of chain.hops.entries()) {
      expect(tracestate).toBe("vendor=1");
      const { spanContext } = tracing.spans[at * 2 + 1] ?? { spanContext: undefined };
      expect(traceparent).toBe(`00-${spanContext?.traceId}-${spanContext?.spanId}-01`);
    }
    trace.disable();
  });
});

describe("work that comes too late", () => {
  it("is not begun: the call's time passed while it was on its way", async () => {
    await using trellis = await startTrellis();
    await using proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const dial: typeof nodePlatform.dial = (options) =>
      nodePlatform.dial({ ...options, servers: [`nats://${proxy.address}`] });
    const done = nothingDone();
    await trellis.service(workService, (service) => void plainHandlers(service, done), {
      platform: { dial },
    });
    const client = await trellis.client(workApp);
    expect((await client.rpc.work.count({ n: 1 })).isOk()).toBe(true);
    proxy.delay(2_500);
    const calls = Array.from({ length: 20 }, (_, n) => client.rpc.work.count({ n: 2 + n }, { timeout: 300 }));
    for (const call of calls) {
      const result = await call;
      expect(result.isErr() && result.error.type).toBe("TimeoutError");
    }
    await pause(2_800);
    proxy.delay(0);
    await eventually(async () => expect((await client.rpc.work.count({ n: 100 })).isOk()).toBe(true));
    expect(done.begun).toEqual([1, 100]);
  });
});
