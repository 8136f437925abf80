import { ok } from "@trellis/result";
import { describe, expect, it } from "vitest";
import { Odd } from "./contract.ts";
import { pause, plainHandlers, startWork, timed } from "./kit.ts";

describe("middleware at the provider", () => {
  it("stands around the handler in order, sees the call, may answer, throw and wait", async () => {
    const seen: string[] = [];
    await using working = await startWork({
      setup(service) {
        plainHandlers(service);
        service.handle.rpc.work.fail(() => "handled");
        service.use(async (call, next) => {
          seen.push(`first ${call.api} ${call.name}`);
          expect(call.context.caller.principal.kind).toBeTypeOf("string");
          const given = await next();
          seen.push("first again");
          return given;
        });
        service.use((call, next) => {
          seen.push("second");
          const how = (call.input as { how?: string }).how;
          if (how === "answer") return "short";
          if (how === "result") return ok("as a result");
          if (how === "declared") throw new Odd({ data: { n: 1, text: "from middleware" } });
          if (how === "bug") throw new Error("secret");
          if (how === "reject") return Promise.reject(new Error("secret"));
          return next();
        });
      },
    });
    const { rpc } = working.client;
    expect((await rpc.work.echo({ text: "a" })).orThrow()).toEqual({ text: "a" });
    expect(seen).toEqual(["first faults.work@v1 Work.Echo", "second", "first again"]);
    expect((await rpc.work.fail({ how: "" })).orThrow()).toBe("handled");
    expect((await rpc.work.fail({ how: "answer" })).orThrow()).toBe("short");
    expect((await rpc.work.fail({ how: "result" })).orThrow()).toBe("as a result");
    const declared = await rpc.work.fail({ how: "declared" });
    expect(declared.isErr() && declared.error).toBeInstanceOf(Odd);
    for (const how of ["bug", "reject"]) {
      const failed = await rpc.work.fail({ how });
      expect(failed.isErr() && failed.error.type).toBe("UnexpectedError");
    }
    expect(() => working.service.use(() => undefined)).toThrow(TypeError);
  });

  it("is not asked about calls that are not admitted or do not fit the schema", async () => {
    let asked = 0;
    await using working = await startWork({
      setup(service) {
        plainHandlers(service);
        service.use((_, next) => {
          asked += 1;
          return next();
        });
      },
    });
    const bad = await working.client.request("Work.Echo", { text: 7 });
    expect(bad.isErr() && bad.error.type).toBe("ValidationError");
    expect(asked).toBe(0);
  });
});

describe("middleware at the caller", () => {
  it("goes in order, changes options, answers in place, calls again, and what it throws is the call's error", async () => {
    await using working = await startWork();
    const { client, done } = working;
    const seen: string[] = [];
    client.use((call, next) => {
      seen.push(`outer ${call.name}`);
      return next();
    });
    client.use(async (call, next) => {
      seen.push("inner");
      const { n } = call.input as { n?: number };
      if (n === 1) return next({ ...call.options, timeout: 50 });
      if (n === 2) return ok({ n: 2, by: "nobody" });
      if (n === 3) throw new Error("no");
      if (n === 4) {
        await next();
        return next();
      }
      if (n === 5) await pause(30);
      return next();
    });
    const { ms, value } = await timed(() => client.rpc.work.slow({ n: 1, ms: 2_000 }, { timeout: 5_000 }));
    expect(value.isErr() && value.error.type).toBe("TimeoutError");
    expect(ms).toBeLessThan(500);
    expect(seen).toEqual(["outer Work.Slow", "inner"]);
    expect((await client.rpc.work.count({ n: 2 })).orThrow().by).toBe("nobody");
    const thrown = await client.rpc.work.count({ n: 3 });
    expect(thrown.isErr() && thrown.error.type).toBe("UnexpectedError");
    expect((await client.rpc.work.count({ n: 4 })).isOk()).toBe(true);
    expect((await client.rpc.work.count({ n: 5 })).isOk()).toBe(true);
    expect(done.begun).toEqual([1, 4, 4, 5]);
  });

  it("that throws before it is asked to, or never calls next, hurts only its call", async () => {
    await using working = await startWork();
    const { client } = working;
    client.use(((call: { input: unknown }, next: () => unknown) => {
      if ((call.input as { n?: number }).n === 1) throw new Error("sync");
      return next();
    }) as Parameters<typeof client.use>[0]);
    const thrown = await client.rpc.work.count({ n: 1 });
    expect(thrown.isErr() && thrown.error.type).toBe("UnexpectedError");
    expect((await client.rpc.work.count({ n: 2 })).isOk()).toBe(true);
  });
});
