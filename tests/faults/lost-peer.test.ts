import { nodePlatform } from "@trellis/runtime/node";
import { eventually, startFaultProxy, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { workApp, workService } from "./contract.ts";
import { nothingDone, pause, plainHandlers, timed } from "./kit.ts";

/** Dials through a proxy. */
function through(address: string): { dial: typeof nodePlatform.dial } {
  return { dial: (options) => nodePlatform.dial({ ...options, servers: [`nats://${address}`] }) };
}

describe.concurrent("a caller that is gone", () => {
  it("is noticed when it is killed: its handler's signal aborts", async () => {
    await using trellis = await startTrellis();
    const done = nothingDone();
    await trellis.service(workService, (service) => void plainHandlers(service, done));
    await using caller = startChild(trellis, "caller");
    await eventually(() => done.begun.length === 1, { timeout: 15_000 });
    caller.kill("SIGKILL");
    await caller.exited;
    const { ms } = await timed(() => eventually(() => done.aborted.length === 1));
    expect(ms).toBeLessThan(2_000);
    expect(done.aborted[0]?.reason).toBe("CancelledError");
  });

  it("holds its handler no longer than its deadline when the network swallows it", async () => {
    await using trellis = await startTrellis();
    const done = nothingDone();
    await trellis.service(workService, (service) => void plainHandlers(service, done));
    await using proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const client = await trellis.client(workApp, { platform: through(proxy.address) });
    const call = timed(() => client.rpc.work.slow({ n: 1, ms: 30_000 }, { timeout: 1_000 }));
    await eventually(() => done.begun.length === 1);
    proxy.blackhole(true);
    const { ms, value } = await call;
    expect(value.isErr() && value.error.type).toBe("TimeoutError");
    expect(ms).toBeLessThan(1_300);
    await eventually(() => done.aborted.length === 1, { timeout: 1_000 });
    proxy.blackhole(false);
    proxy.cut();
    await eventually(() => client.connection.status.phase === "connected");
    expect((await client.rpc.work.echo({ text: "again" })).isOk()).toBe(true);
  });
});

describe.concurrent("a provider that is gone", () => {
  it("is killed: its calls end fast, those that may run twice succeed at the other replica", async () => {
    await using trellis = await startTrellis();
    await using lost = startChild(trellis, "provider");
    await lost.line("ready");
    const client = await trellis.client(workApp);
    const calls = Array.from({ length: 10 }, (_, n) => client.rpc.work.slow({ n, ms: 20_000 }));
    const again = Array.from({ length: 10 }, (_, n) => client.rpc.work.slowAgain({ n: 100 + n, ms: 300 }));
    await lost.line("begun 9");
    const longer = Array.from({ length: 10 }, (_, n) => client.rpc.work.slowAgain({ n: 200 + n, ms: 1_500 }));
    await lost.line("begun 209");
    const done = nothingDone();
    const survivor = await trellis.service(
      workService,
      (service) => void plainHandlers(service, done, "survivor"),
    );
    // These have just been sent: no receipt has told who has them.
    const justSent = Array.from({ length: 5 }, (_, n) => client.rpc.work.slow({ n: 300 + n, ms: 500 }));
    lost.kill("SIGKILL");
    const started = performance.now();
    for (const call of calls) {
      const result = await call;
      expect(result.isErr() && result.error).toMatchObject({
        type: "UnavailableError",
        reason: "provider_lost",
      });
    }
    expect(performance.now() - started).toBeLessThan(2_500);
    for (const call of justSent) {
      const result = await call;
      if (result.isErr()) expect(result.error).toMatchObject({ reason: "provider_lost" });
      else expect(result.value.by).toBe("survivor");
    }
    expect(performance.now() - started).toBeLessThan(4_000);
    for (const call of again) expect((await call).isOk()).toBe(true);
    for (const call of longer) expect((await call).orThrow().by).toBe("survivor");
    await survivor.stop();
  });

  it("loses its socket for a moment: its calls are not lost, their answers come when it is back", async () => {
    await using trellis = await startTrellis();
    await using proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
    const done = nothingDone();
    const service = await trellis.service(workService, (it) => void plainHandlers(it, done), {
      platform: through(proxy.address),
    });
    const client = await trellis.client(workApp);
    const calls = Array.from({ length: 50 }, (_, n) =>
      client.rpc.work.slow({ n, ms: 200 + n }, { timeout: 5_000 }),
    );
    const longer = client.rpc.work.slow({ n: 50, ms: 1_500 }, { timeout: 5_000 });
    await eventually(() => done.begun.length === 51);
    await proxy.refuse(true);
    proxy.cut();
    await eventually(() => done.finished.length === 50);
    expect(service.connection.status.phase).toBe("reconnecting");
    await proxy.refuse(false);
    for (const call of calls) expect((await call).isOk()).toBe(true);
    expect((await longer).isOk()).toBe(true);
    expect(done.aborted).toEqual([]);
    await service.stop();
  });

  it("was the last one: no_responders within the time that calls wait for one", async () => {
    await using trellis = await startTrellis();
    await using lost = startChild(trellis, "provider");
    await lost.line("ready");
    const client = await trellis.client(workApp, {
      runtime: { noResponderRetry: { maxElapsed: 1_000, initial: 50, max: 200 } },
    });
    const call = client.rpc.work.slowAgain({ n: 1, ms: 20_000 }, { timeout: 20_000 });
    await lost.line("begun 1");
    lost.kill("SIGKILL");
    await lost.exited;
    const fresh = await timed(() => client.rpc.work.count({ n: 2 }, { timeout: 10_000 }));
    expect(fresh.value.isErr() && fresh.value.error).toMatchObject({ reason: "no_responders" });
    expect(fresh.ms).toBeLessThan(1_500);
    const { ms, value } = await timed(() => call);
    expect(value.isErr() && value.error.type).toBe("UnavailableError");
    expect(ms).toBeLessThan(3_000);
  });
});

describe.concurrent("a provider that is silent", () => {
  it("is not taken for lost while its event loop is blocked for some seconds", async () => {
    await using trellis = await startTrellis();
    await using blocked = startChild(trellis, "provider");
    await blocked.line("ready");
    const client = await trellis.client(workApp);
    const waiting = client.rpc.work.slow({ n: 1, ms: 1_000 });
    await blocked.line("begun 1");
    const { ms, value } = await timed(() => client.rpc.work.fail({ how: "4000" }));
    expect(value.orThrow()).toBe("unblocked");
    expect(ms).toBeGreaterThan(3_900);
    expect((await waiting).isOk()).toBe(true);
    blocked.kill("SIGKILL");
    await blocked.exited;
  });

  it("is given up when it stands still although the broker still has it", async () => {
    await using trellis = await startTrellis();
    await using frozen = startChild(trellis, "provider");
    await frozen.line("ready");
    const client = await trellis.client(workApp);
    const call = client.rpc.work.slow({ n: 1, ms: 500 });
    await frozen.line("begun 1");
    frozen.kill("SIGSTOP");
    const { ms, value } = await timed(() => call);
    expect(value.isErr() && value.error).toMatchObject({ type: "UnavailableError", reason: "provider_lost" });
    expect(ms).toBeGreaterThan(7_000);
    expect(ms).toBeLessThan(10_000);
    frozen.kill("SIGCONT");
    await eventually(async () => expect((await client.rpc.work.count({ n: 2 })).isOk()).toBe(true));
    await pause(0);
  });
});
