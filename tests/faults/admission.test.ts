import { eventually } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { nothingDone, pause, plainHandlers, recordingLog, startWork, timed } from "./kit.ts";

describe.concurrent("bounded admission", () => {
  it("runs ten, turns the rest away at once, and still hears a cancel", async () => {
    await using working = await startWork({ service: { runtime: { admission: { maxCalls: 10 } } } });
    const { client, done } = working;
    const leaving = new AbortController();
    const options = { signal: leaving.signal };
    const { work } = client.rpc;
    const started = performance.now();
    const calls = Array.from({ length: 100 }, (_, n) => work.slow({ n, ms: 1_500 }, n === 0 ? options : {}));
    const turnedAway = calls.slice(10).map(async (call) => {
      const result = await call;
      return { ms: performance.now() - started, error: result.isErr() ? result.error : undefined };
    });
    for (const { ms, error } of await Promise.all(turnedAway)) {
      expect(error).toMatchObject({ type: "BusyError", retryAfterMs: expect.any(Number) });
      expect(ms).toBeLessThan(500);
    }
    expect(done.begun).toHaveLength(10);
    // Cancel has its own lane: it works while every slot is taken.
    leaving.abort();
    expect((await calls[0])?.isErr()).toBe(true);
    await eventually(() => done.aborted.some(({ n }) => n === 0), { timeout: 1_000 });
    const health = await working.service.health.check();
    expect(health.find(({ name }) => name === "nats")?.status).toBe("ok");
    for (const call of calls.slice(1, 10)) expect((await call).isOk()).toBe(true);
    expect((await work.slow({ n: 200, ms: 0 })).isOk()).toBe(true);
  });

  it("retries what may run twice, until it is let in", async () => {
    await using working = await startWork({ service: { runtime: { admission: { maxCalls: 4 } } } });
    const calls = Array.from({ length: 24 }, (_, n) => working.client.rpc.work.slowAgain({ n, ms: 60 }));
    for (const call of calls) expect((await call).isOk()).toBe(true);
    expect([...working.done.finished].sort((a, b) => a - b)).toEqual(calls.map((_, n) => n));
  });

  it("bounds bytes too", async () => {
    await using working = await startWork({ service: { runtime: { admission: { maxBytes: 10_000 } } } });
    const tooMuch = await working.client.rpc.work.echo({ text: "x".repeat(20_000) }, { timeout: 500 });
    expect(tooMuch.isErr()).toBe(true);
    expect((await working.client.rpc.work.echo({ text: "x" })).isOk()).toBe(true);
  });

  it("gives the slot of a handler that never ends to others after a grace, and caps such handlers", async () => {
    const log = recordingLog();
    const done = nothingDone();
    await using working = await startWork({
      service: { runtime: { log, admission: { maxCalls: 2, maxZombies: 2 } } },
      setup(service) {
        plainHandlers(service, done);
        service.handle.rpc.work.fail(() => new Promise<never>(() => {}));
      },
    });
    const { work } = working.client.rpc;
    const { ms, value } = await timed(() => work.fail({ how: "never" }, { timeout: 200 }));
    expect(value.isErr() && value.error.type).toBe("TimeoutError");
    expect(ms).toBeLessThan(450);
    void work.fail({ how: "never" }, { timeout: 200 });
    await pause(300);
    // Both slots are held: nothing else is let in until the grace is over.
    const held = await work.count({ n: 1 });
    expect(held.isErr() && held.error.type).toBe("BusyError");
    const zombies = () =>
      log.records.filter(({ message }) => message.includes("ignores context.signal")).length;
    await eventually(() => zombies() === 2, { timeout: 7_000 });
    // Two is the most that may be left like that; then the service takes nothing on any more.
    const capped = await work.count({ n: 2 });
    expect(capped.isErr() && capped.error.type).toBe("BusyError");
    const stopped = await timed(() => working.service.stop({ timeout: 1_500 }));
    expect(stopped.ms).toBeLessThan(1_700);
    expect(log.records.some(({ fields }) => fields["abandoned"] === 2)).toBe(true);
  });
});
