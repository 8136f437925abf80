import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import { startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { work, workApp, workService } from "./contract.ts";
import { pause, plainHandlers, type WorkService } from "./kit.ts";

const extra = defineApi("faults.extra@v1", {
  rpc: { "Extra.Ping": rpc({ output: Type.String(), idempotent: true }) },
});
const extraService = defineService("faults.extra-service", { implements: [extra] });
const workServiceNext = defineService("faults.work-service", { implements: [work], uses: [use(extra)] });
const workAppNext = defineApp("faults.app", { uses: [use(work), use(extra)] });

describe.concurrent("a compatible new version of a contract, deployed while the old one works", () => {
  it("interrupts nothing, at the caller and at the provider", async () => {
    await using trellis = await startTrellis({
      controlPlane: { authorization: { lifeMs: 3_000 }, failuresPerMinute: 10_000 },
    });
    await trellis.service(extraService, ({ handle }) => handle.rpc.extra.ping(() => "pong"));
    const service = await trellis.service(
      workService,
      (it: WorkService) => void plainHandlers(it, undefined, "old"),
    );
    const client = await trellis.client(workApp);
    const phases: string[] = [];
    client.connection.subscribe(({ phase }) => void phases.push(`client ${phase}`));
    service.connection.subscribe(({ phase }) => void phases.push(`service ${phase}`));
    const end = performance.now() + 7_000;
    const failures: unknown[] = [];
    let answered = 0;
    const keep = async (ms: number) => {
      while (performance.now() < end) {
        const n = answered;
        const result = ms === 0 ? await client.rpc.work.count({ n }) : await client.rpc.work.slow({ n, ms });
        if (result.isErr()) failures.push(result.error);
        else answered += 1;
        if (ms === 0 || result.isErr()) await pause(3);
      }
    };
    const workers = [0, 0, 0, 50, 400, 900].map(keep);
    await pause(1_000);
    const next = await trellis.client(workAppNext);
    expect((await next.rpc.extra.ping()).orThrow()).toBe("pong");
    await pause(2_000);
    await trellis.service(workServiceNext, (it) => {
      it.handle.rpc.work.count(({ input }) => ({ n: input.n, by: "new" }));
      it.handle.rpc.work.slow(async ({ input }) => {
        await pause(input.ms);
        return { n: input.n, by: "new" };
      });
    });
    await Promise.all(workers);
    expect(phases).toEqual(["client connected", "service connected"]);
    expect(answered).toBeGreaterThan(500);
    expect(failures).toEqual([]);
  }, 30_000);

  it("a binding that appears is adopted at a quiet moment: nothing under way is lost", async () => {
    await using trellis = await startTrellis({
      controlPlane: { authorization: { lifeMs: 3_000 }, failuresPerMinute: 10_000 },
    });
    // Both use an API that nobody provides yet; the broker's permissions will have to be widened.
    const service = await trellis.service(workServiceNext, (it) => {
      it.handle.rpc.work.count(({ input }) => ({ n: input.n, by: "it" }));
      it.handle.rpc.work.slow(async ({ input }) => {
        await pause(input.ms);
        return { n: input.n, by: "it" };
      });
      it.handle.rpc.work.give(async ({ client: inner }) => inner.rpc.extra.ping().orThrow());
    });
    const client = await trellis.client(workAppNext);
    const phases: string[] = [];
    client.connection.subscribe(({ phase }) => void phases.push(`client ${phase}`));
    service.connection.subscribe(({ phase }) => void phases.push(`service ${phase}`));
    const failures: unknown[] = [];
    let going = true;
    let answered = 0;
    const keep = async (ms: number) => {
      while (going) {
        const n = answered;
        const result = ms === 0 ? await client.rpc.work.count({ n }) : await client.rpc.work.slow({ n, ms });
        if (result.isErr()) failures.push(result.error);
        else answered += 1;
        if (ms === 0 || result.isErr()) await pause(3);
      }
    };
    const workers = [0, 0, 0, 50, 400, 900].map(keep);
    await pause(500);
    await trellis.service(extraService, ({ handle }) => handle.rpc.extra.ping(() => "pong"));
    expect((await client.rpc.extra.ping(undefined, { timeout: 15_000 })).orThrow()).toBe("pong");
    expect((await client.rpc.work.give({ what: "" }, { timeout: 15_000 })).orThrow()).toBe("pong");
    await pause(500);
    going = false;
    await Promise.all(workers);
    expect(failures).toEqual([]);
    // Both did take a new socket.
    expect(phases).toContain("client reconnecting");
    expect(phases).toContain("service reconnecting");
    expect(phases.filter((phase) => phase === "client connected")).toHaveLength(2);
    expect(phases.filter((phase) => phase === "service connected")).toHaveLength(2);
  }, 40_000);
});
