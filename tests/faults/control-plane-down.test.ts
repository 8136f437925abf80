import { createServer } from "node:net";
import { connectClientWith, nodePlatform } from "@trellis/runtime/node";
import { eventually, type FaultProxy, startFaultProxy } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { workApp } from "./contract.ts";
import {
  count,
  pause,
  type StartWorkOptions,
  startWork,
  timed,
  type Working,
  watchUnhandled,
} from "./kit.ts";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** A Trellis whose control plane is reached through a proxy, so that it can be taken away from the others. */
async function startBehindProxy(
  lifeMs: number,
  options: StartWorkOptions = {},
): Promise<Working & { readonly http: FaultProxy }> {
  const [port, proxyPort] = [await freePort(), await freePort()];
  const http = await startFaultProxy({ target: { host: "127.0.0.1", port }, port: proxyPort });
  const working = await startWork({
    ...options,
    trellis: {
      controlPlane: {
        http: { port, origins: [`http://127.0.0.1:${proxyPort}`] },
        authorization: { lifeMs },
        connections: { sweepMs: 500 },
        failuresPerMinute: 10_000,
      },
    },
  });
  const { trellis, service, client, done } = working;
  return {
    trellis,
    service,
    client,
    done,
    http,
    async [Symbol.asyncDispose]() {
      await trellis.stop();
      await http.stop();
    },
  };
}

async function takeAway(http: FaultProxy): Promise<void> {
  await http.refuse(true);
  http.cut();
}

describe("the control plane is down", () => {
  it("connections go on; a new connect gives a typed error in time; when it is back, everything works", async () => {
    using unhandled = watchUnhandled();
    await using working = await startBehindProxy(3_600_000);
    const { client, http, trellis } = working;
    await takeAway(http);
    for (let n = 0; n < 50; n += 1) expect((await client.rpc.work.count({ n })).isOk()).toBe(true);
    const connect = (timeout: number) =>
      connectClientWith(
        { participant: workApp, trellisUrl: trellis.url, timeout, runtime: { log: false } },
        {
          platform: { ...nodePlatform, discover: () => ({ production: false, devToken: trellis.devToken }) },
        },
      );
    const refused = await timed(() => connect(600));
    expect(refused.ms).toBeLessThan(800);
    expect(refused.value.isErr() && refused.value.error).toMatchObject({
      type: "TransportError",
      code: "trellis.bootstrap.unreachable",
      hint: expect.stringContaining("trellis dev"),
    });
    await http.refuse(false);
    http.blackhole(true);
    const silent = await timed(() => connect(600));
    expect(silent.ms).toBeLessThan(800);
    expect(silent.value.isErr() && silent.value.error).toMatchObject({
      type: "TransportError",
      code: "trellis.runtime.connect_timeout",
      hint: expect.any(String),
    });
    http.blackhole(false);
    http.cut();
    // A connect that began while it was away gets through when it is back.
    await takeAway(http);
    const early = connect(10_000);
    await pause(300);
    await http.refuse(false);
    const late = await early.orThrow();
    expect((await late.rpc.work.echo({ text: "back" })).isOk()).toBe(true);
    await late.close();
    expect((await client.rpc.work.echo({ text: "x" })).isOk()).toBe(true);
    expect(unhandled.seen).toEqual([]);
  });
});

describe.concurrent("an authorization that ends", () => {
  it("routine refreshes interrupt nothing: slow and quick calls across several lives of an authorization", async () => {
    await using working = await startBehindProxy(3_000);
    const { client } = working;
    const end = performance.now() + count(60_000, 12_000);
    const failures: unknown[] = [];
    let quick = 0;
    let slow = 0;
    const keep = async (ms: number, counted: () => void) => {
      while (performance.now() < end) {
        const n = quick + slow;
        const result = ms === 0 ? await client.rpc.work.count({ n }) : await client.rpc.work.slow({ n, ms });
        if (result.isErr()) failures.push(result.error);
        else counted();
        if (ms === 0) await pause(5);
      }
    };
    const workers = Array.from({ length: 8 }, (_, n) =>
      keep(n < 4 ? 2_000 : 0, n < 4 ? () => (slow += 1) : () => (quick += 1)),
    );
    await Promise.all(workers);
    expect(failures).toEqual([]);
    expect(slow).toBeGreaterThanOrEqual(4 * 5);
    expect(quick).toBeGreaterThan(500);
    expect(client.connection.status.phase).toBe("connected");
  }, 90_000);

  it("for longer than an authorization lives: calls fail fast, and work again by themselves", async () => {
    await using working = await startBehindProxy(2_000);
    const { client, http } = working;
    const phases: string[] = [];
    client.connection.subscribe(({ phase }) => void phases.push(phase));
    await takeAway(http);
    await eventually(async () => {
      const { ms, value } = await timed(() => client.rpc.work.count({ n: 1 }, { timeout: 1_000 }));
      expect(value.isErr() && value.error).toMatchObject({ type: "UnavailableError", reason: "invalidated" });
      expect(ms).toBeLessThan(200);
    });
    // Kicked by then; the broker takes neither of them back.
    await pause(2_500);
    await http.refuse(false);
    const { ms } = await timed(() =>
      eventually(
        async () => expect((await client.rpc.work.count({ n: 2 }, { timeout: 500 })).isOk()).toBe(true),
        {
          timeout: 10_000,
        },
      ),
    );
    expect(ms).toBeLessThan(6_000);
    expect(phases).not.toContain("error");
    expect(phases).not.toContain("closed");
  });

  it("a caller that slept past the end of its authorization works again within seconds", async () => {
    await using working = await startBehindProxy(2_000);
    await using sleeper = startChild(working.trellis, "steady");
    await sleeper.line("ready");
    sleeper.tell("1");
    expect(await sleeper.line("call 1")).toContain("ok");
    sleeper.kill("SIGSTOP");
    await pause(4_000);
    sleeper.kill("SIGCONT");
    const woken = performance.now();
    let n = 2;
    await eventually(
      async () => {
        n += 1;
        sleeper.tell(String(n));
        expect(await sleeper.line(`call ${n}`)).toContain("ok");
      },
      { timeout: 10_000, interval: 100 },
    );
    expect(performance.now() - woken).toBeLessThan(5_000);
    sleeper.tell("stop");
    expect(await sleeper.exited, sleeper.errors()).toEqual({ code: 0, signal: null });
  });
});
