import { connectClientWith, connectServiceWith, nodePlatform } from "@trellis/runtime/node";
import {
  eventually,
  startFaultProxy,
  startTrellis,
  stressStartStop,
  type TestTrellis,
  watchLeaks,
} from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { workApp, workService } from "./contract.ts";
import { nothingDone, pause, plainHandlers, recordingLog, timed, watchUnhandled } from "./kit.ts";

describe("shutdown", () => {
  let trellis: TestTrellis;
  const unhandled = watchUnhandled();
  beforeAll(async () => {
    trellis = await startTrellis();
    await trellis.service(workService, (service) => void plainHandlers(service));
  });
  afterAll(() => trellis.stop());

  const runtime = { log: false } as const;
  const deps = () => ({
    platform: { ...nodePlatform, discover: () => ({ production: false, devToken: trellis.devToken }) },
  });
  const connectService = () =>
    connectServiceWith({ participant: workService, trellisUrl: trellis.url, runtime }, deps());
  const connectClient = (args: { timeout?: number; signal?: AbortSignal } = {}) =>
    connectClientWith({ participant: workApp, trellisUrl: trellis.url, runtime, ...args }, deps());

  it("leaves nothing behind, in every order of start and stop", async () => {
    await stressStartStop(
      () => {
        const leaving = new AbortController();
        let service: Awaited<ReturnType<typeof start>> | undefined;
        let starting: Promise<unknown> | undefined;
        const start = async () => {
          const connected = await connectServiceWith(
            { participant: workService, trellisUrl: trellis.url, runtime, signal: leaving.signal },
            deps(),
          ).orThrow();
          service = connected;
          plainHandlers(connected);
          if (!leaving.signal.aborted) await connected.start();
          return connected;
        };
        return {
          start: () => (starting ??= start()),
          stop: async () => {
            leaving.abort();
            await service?.stop();
            // A connect that was overtaken ends by itself.
            await starting?.catch(() => undefined);
            await service?.stop();
          },
        };
      },
      { rounds: 1, concurrency: 5, settle: 8_000 },
    );
  });

  it("may be called before start, during it, twice and at once; start after it is refused", async () => {
    const watch = await watchLeaks();
    const unstarted = await connectService().orThrow();
    await Promise.all([unstarted.stop(), unstarted.stop()]);
    await expect(unstarted.start()).rejects.toThrow("closed");
    await unstarted.stop();

    const overtaken = await connectService().orThrow();
    plainHandlers(overtaken);
    const starting = overtaken.start().catch(() => "refused");
    await Promise.all([overtaken.stop(), overtaken.stop({ timeout: 1 })]);
    await starting;

    const waiting = await connectService().orThrow();
    plainHandlers(waiting);
    const wait = waiting.wait();
    await pause(20);
    await waiting.stop();
    await wait;
    expect(waiting.connection.status).toMatchObject({ phase: "closed", reason: "stopped" });
    const call = await waiting.client.request("none");
    expect(call.isErr()).toBe(true);
    // The control plane is in this process too: its side of a kept HTTP connection goes after some seconds.
    await watch.expectNoLeaks({ within: 8_000 });
  });

  it("drains: a call that is under way is answered, a new one is not taken", async () => {
    await using own = await startTrellis();
    const done = nothingDone();
    const service = await own.service(workService, (it) => void plainHandlers(it, done));
    const client = await own.client(workApp, { runtime: { noResponderRetry: false } });
    const calls = Array.from({ length: 50 }, (_, n) => client.rpc.work.slow({ n, ms: 400 }));
    await eventually(() => done.begun.length === 50);
    const stopping = timed(() => service.stop());
    await eventually(async () => {
      const late = await client.rpc.work.count({ n: 1_000 });
      expect(late.isErr() && late.error).toMatchObject({ type: "UnavailableError", reason: "no_responders" });
    });
    for (const call of calls) expect((await call).isOk()).toBe(true);
    expect((await stopping).ms).toBeLessThan(1_000);
    expect(done.begun.filter((n) => n === 1_000).length).toBeLessThanOrEqual(1);
  });

  it("sends the answer of a handler that stops its own service", async () => {
    await using own = await startTrellis();
    let stopping: Promise<void> | undefined;
    const service = await own.service(workService, (it) => {
      plainHandlers(it);
      it.handle.rpc.work.fail(() => {
        stopping = it.stop();
        return "bye";
      });
    });
    const client = await own.client(workApp);
    expect((await client.rpc.work.fail({ how: "" })).orThrow()).toBe("bye");
    await stopping;
    expect(service.connection.status.phase).toBe("closed");
  });

  it("ends within its budget although a handler waits for the stop, or never ends, and says what it left", async () => {
    await using own = await startTrellis();
    const log = recordingLog();
    const service = await own.service(
      workService,
      (it) => {
        plainHandlers(it);
        it.handle.rpc.work.fail(async ({ input }) => {
          if (input.how === "waits") await it.stop({ timeout: 1_500 });
          else await new Promise<never>(() => {});
          return "never";
        });
      },
      { runtime: { log } },
    );
    const client = await own.client(workApp);
    const never = client.rpc.work.fail({ how: "never" });
    const waits = client.rpc.work.fail({ how: "waits" });
    const { ms } = await timed(() => service.connection.closed);
    expect(ms).toBeLessThan(2_000);
    for (const call of [never, waits]) {
      const result = await call;
      expect(result.isErr() && result.error).toMatchObject({
        type: "UnavailableError",
        reason: "provider_lost",
      });
    }
    expect(log.records.find(({ fields }) => "abandoned" in fields)?.fields["abandoned"]).toBe(2);
  });

  it("ends in under a second while the broker is down, or swallows everything", async () => {
    await using own = await startTrellis();
    const { nats } = own.controlPlane;
    await using proxy = await startFaultProxy({ target: nats?.url ?? "" });
    const dial: typeof nodePlatform.dial = (options) =>
      nodePlatform.dial({ ...options, servers: [`nats://${proxy.address}`] });
    const platform = { dial };
    const watch = await watchLeaks();
    const open = async () => {
      const service = await own.service(workService, (it) => void plainHandlers(it), { platform });
      const client = await own.client(workApp, { platform });
      return { service, client, pending: client.rpc.work.slow({ n: 1, ms: 60_000 }, { timeout: 60_000 }) };
    };
    const close = async ({ service, client, pending }: Awaited<ReturnType<typeof open>>, phase: string) => {
      const closing = await timed(() => client.close());
      expect(closing.ms, phase).toBeLessThan(1_000);
      expect((await pending).isErr()).toBe(true);
      const stopping = await timed(() => service.stop({ timeout: 900 }));
      expect(stopping.ms, phase).toBeLessThan(1_000);
      expect(service.connection.status.phase).toBe("closed");
    };
    const refused = await open();
    await proxy.refuse(true);
    proxy.cut();
    await eventually(() => refused.service.connection.status.phase === "reconnecting");
    await close(refused, "refused");
    await proxy.refuse(false);

    // Reconnecting into a network that accepts and then says nothing.
    const mute = await open();
    proxy.blackhole(true);
    proxy.cut();
    await eventually(() => mute.client.connection.status.phase === "reconnecting");
    await eventually(() => proxy.connections() > 0);
    await close(mute, "accepted, then silence");
    proxy.blackhole(false);

    // Still connected, as far as anybody knows.
    const swallowed = await open();
    proxy.blackhole(true);
    await close(swallowed, "swallowed");
    proxy.cut();
    proxy.blackhole(false);
    await watch.expectNoLeaks({ within: 3_000 });
  });

  it("wins over a connect that is under way, and an abort ends a connect at once", async () => {
    const watch = await watchLeaks();
    for (const ms of [0, 1, 5, 20, 60]) {
      const leaving = new AbortController();
      const connecting = connectClient({ signal: leaving.signal });
      if (ms > 0) await pause(ms);
      leaving.abort(new Error("left"));
      const { ms: took, value } = await timed(() => connecting);
      expect(took).toBeLessThan(300);
      if (value.isOk()) await value.value.close();
      else expect(value.error).toMatchObject({ code: "trellis.runtime.connect_aborted" });
    }
    await watch.expectNoLeaks({ within: 8_000 });
  });

  it("connects five at once, and works after a connect that failed", async () => {
    const failed = await connectClientWith(
      { participant: workApp, trellisUrl: "http://127.0.0.1:9", timeout: 300, runtime },
      deps(),
    );
    expect(failed.isErr() && failed.error).toMatchObject({ code: "trellis.bootstrap.unreachable" });
    const clients = await Promise.all(Array.from({ length: 5 }, () => connectClient().orThrow()));
    for (const client of clients) expect((await client.rpc.work.echo({ text: "x" })).isOk()).toBe(true);
    await Promise.all(clients.map((client) => client.close()));
    for (const client of clients) {
      const late = await client.rpc.work.echo({ text: "x" });
      expect(late.isErr() && late.error).toMatchObject({ type: "UnavailableError", reason: "closed" });
    }
  });

  it("lets plain scripts end by themselves", async () => {
    const children = [
      { child: startChild(trellis, "plain-client"), last: "closed from a script" },
      { child: startChild(trellis, "plain-service"), last: "stopped" },
      { child: startChild(trellis, "failing-client"), last: "closed" },
    ];
    for (const { child, last } of children) {
      await child.line(last, 30_000);
      const { ms, value } = await timed(() => child.exited);
      expect(value, child.errors()).toEqual({ code: 0, signal: null });
      expect(ms).toBeLessThan(2_000);
      expect(child.errors()).toBe("");
    }
    expect(children[2]?.child.lines).toEqual([
      "failed TransportError",
      "aborted trellis.runtime.connect_aborted",
      "works true",
      "closed",
    ]);
    expect(unhandled.seen).toEqual([]);
    unhandled[Symbol.dispose]();
  });
});
