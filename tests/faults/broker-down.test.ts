import { eventually } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { count, heap, pause, startWork, timed, watchUnhandled } from "./kit.ts";

describe("the broker goes away", () => {
  it("under 500 calls: every one settles, and calls work again in the same process", async () => {
    using unhandled = watchUnhandled();
    await using working = await startWork();
    const { client, service, trellis, done } = working;
    const phases: string[] = [];
    const unsubscribe = client.connection.subscribe(({ phase }) => void phases.push(phase));
    for (const kill of [true, false]) {
      const before = done.begun.length;
      const calls = Array.from({ length: 500 }, (_, n) => {
        const input = { n: before + n, ms: 700 };
        const options = { timeout: 8_000 };
        return n % 2 === 0 ? client.rpc.work.slow(input, options) : client.rpc.work.slowAgain(input, options);
      });
      await eventually(() => done.begun.length >= before + 500);
      await trellis.restartNats({ kill });
      const { ms, value: results } = await timed(() => Promise.all(calls));
      expect(ms).toBeLessThan(8_500);
      for (const [n, result] of results.entries()) {
        if (n % 2 === 1) expect(result.isOk(), String(n)).toBe(true);
        else if (result.isErr()) expect(result.error).toMatchObject({ code: "trellis.connection.lost" });
      }
      expect(results.some((result) => result.isErr())).toBe(true);
      await eventually(async () => expect((await client.rpc.work.count({ n: 0 })).isOk()).toBe(true));
      expect(service.connection.status.phase).toBe("connected");
    }
    unsubscribe();
    expect(phases.filter((phase, at) => phase !== phases[at - 1])).toEqual([
      "connected",
      "reconnecting",
      "connected",
      "reconnecting",
      "connected",
    ]);
    await pause(10);
    expect(unhandled.seen).toEqual([]);
  });

  it("is killed at random under load: nothing is unhandled, and it works at the end", async () => {
    await using working = await startWork();
    const { trellis } = working;
    await working.service.stop();
    await using storm = startChild(trellis, "storm");
    await storm.line("ready");
    const kills = count(50, 20);
    for (let kill = 0; kill < kills; kill += 1) {
      // Also before the process has found back from the last time.
      await pause(Math.random() * 250);
      await trellis.restartNats({ kill: true });
    }
    await eventually(
      async () => {
        storm.tell("report");
        await pause(50);
        const reports = storm.lines.filter((line) => line.startsWith("report "));
        const [first, last] = [reports.at(-2), reports.at(-1)].map(
          (line) =>
            (JSON.parse(line?.slice("report ".length) ?? "{}") as Record<string, number>)["once ok"] ?? 0,
        );
        expect(last).toBeGreaterThan(first ?? 0);
      },
      { timeout: 10_000, interval: 200 },
    );
    storm.tell("stop");
    expect(await storm.line("phase")).toBe("phase connected connected");
    expect(await storm.line("last")).toBe("last true");
    expect(await storm.exited, storm.errors()).toEqual({ code: 0, signal: null });
    expect(storm.errors()).toBe("");
    const report = storm.lines.filter((line) => line.startsWith("report ")).at(-1) ?? "";
    const outcomes = JSON.parse(report.slice("report ".length)) as Record<string, number>;
    expect(Object.keys(outcomes).sort()).toEqual(expect.arrayContaining(["again ok", "once ok"]));
    expect(outcomes["again UnexpectedError"] ?? outcomes["once UnexpectedError"]).toBeUndefined();
  }, 60_000);

  it("stays away: calls end within their time, are never carried out later, and cost no memory", async () => {
    await using working = await startWork();
    const { client, service, trellis, done } = working;
    const { nats } = trellis.controlPlane;
    expect((await client.rpc.work.count({ n: 0 })).isOk()).toBe(true);
    await nats?.halt({ kill: true });
    await eventually(() => client.connection.status.phase === "reconnecting");
    // Calls that wait for long, at the head of the queue: those behind them must be let go of all the same.
    const leaving = new AbortController();
    const waiting = Array.from({ length: 100 }, (_, n) =>
      client.rpc.work.count({ n: 5_000 + n }, { timeout: 60_000, signal: leaving.signal }),
    );
    let baseline = 0;
    for (let round = 0; round < count(50, 4); round += 1) {
      const started = performance.now();
      const calls = Array.from({ length: 1_000 }, (_, n) =>
        client.rpc.work.count({ n: 1 + n }, { timeout: 500 }),
      );
      for (const call of calls) {
        const result = await call;
        expect(result.isErr() && result.error.type).toBe("TimeoutError");
      }
      const ms = performance.now() - started;
      expect(ms).toBeGreaterThan(450);
      expect(ms).toBeLessThan(900);
      if (round === 0) baseline = await heap();
    }
    expect((await heap()) - baseline).toBeLessThan(1_000_000);
    leaving.abort();
    for (const call of waiting) expect((await call).isErr()).toBe(true);
    const health = await service.health.check();
    expect(health.find(({ name }) => name === "nats")?.status).toBe("degraded");
    // A call whose time is longer than the outage is carried out when the broker is back.
    const patient = client.rpc.work.count({ n: 9_999 }, { timeout: 15_000 });
    await nats?.restart();
    expect((await patient).isOk()).toBe(true);
    await pause(300);
    expect(done.begun).toEqual([0, 9_999]);
  });
});
