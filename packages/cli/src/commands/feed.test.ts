import { defineApi, defineError, defineService, feed } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunOptions, runCli, runShell, startCli } from "../cli.test-kit.ts";

const Overheated = defineError("Overheated", { data: Type.Object({ at: Type.Integer() }) });
const machines = defineApi("acme.machines@v1", {
  feeds: {
    "Machines.Temperature": feed({
      input: Type.Object({ from: Type.Integer() }),
      event: Type.Object({ degrees: Type.Integer() }),
      errors: [Overheated],
    }),
    Heartbeat: feed({ event: Type.String() }),
  },
});
const machinesService = defineService("acme.machines-service", { implements: [machines] });

const slow = 240_000;
let trellis: TestTrellis;
/** Producers that run. */
let open = 0;

beforeAll(async () => {
  trellis = await startTrellis();
  await trellis.service(machinesService, ({ handle }) => {
    handle.feed.machines.temperature(async ({ input, emit }) => {
      for (let degrees = input.from; degrees < 100; degrees += 1) await emit({ degrees });
      return new Overheated({ data: { at: 100 } });
    });
    handle.feed.heartbeat.heartbeat(async ({ emit, signal }) => {
      open += 1;
      await emit("thump");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      open -= 1;
    });
  });
}, 30_000);
afterAll(() => trellis?.stop());

const run = (args: readonly string[], options: RunOptions = {}) =>
  runCli(args, { ...options, env: { ...trellis.env(), ...options.env } });

describe.concurrent("trellis feed", () => {
  it(
    "shows items as they come, then tells a declared error",
    async () => {
      const shown = await run(["feed", "Machines.Temperature", '{"from":97}', "--json"]);
      expect(shown.stdout).toBe('{"degrees":97}\n{"degrees":98}\n{"degrees":99}\n');
      expect(shown.code).toBe(6);
      expect(JSON.parse(shown.stderr)).toMatchObject({ error: { type: "Overheated", data: { at: 100 } } });
    },
    slow,
  );

  it(
    "ends after so many items, and when the reader of its output has seen enough",
    async () => {
      const args = ["feed", "acme.machines@v1.Machines.Temperature", '{"from":0}', "--limit", "2"];
      expect(await run(args)).toEqual({ code: 0, stdout: '{"degrees":0}\n{"degrees":1}\n', stderr: "" });
      const line = "trellis feed Machines.Temperature '{\"from\":-100000}' --json | head -1";
      expect(await runShell(line, { env: trellis.env() })).toMatchObject({
        stdout: '{"degrees":-100000}\n',
        stderr: "",
      });
      expect((await run(["feed", "Heartbeat", "--limit", "0"])).code).toBe(2);
    },
    slow,
  );

  it(
    "ends on Ctrl-C with exit code 0, at the other end too",
    async () => {
      const running = startCli(["feed", "Heartbeat"], { env: trellis.env() });
      await running.until(/"thump"/);
      expect(open).toBe(1);
      expect(await running.end("SIGINT")).toBe(0);
      expect(running.output).toBe('"thump"\n');
      await eventually(() => expect(open).toBe(0));
    },
    slow,
  );

  it(
    "says what there is when there is no such feed, and what is wrong with the input",
    async () => {
      const near = await run(["feed", "Machines.Temperatur"]);
      expect(near.code).toBe(5);
      expect(near.stderr).toContain("Did you mean Machines.Temperature?");
      const wrong = await run(["feed", "Machines.Temperature", '{"from":"x"}']);
      expect(wrong.code).toBe(2);
      expect(wrong.stderr).toContain("/from");
      expect((await run(["call", "Machines.Temperature"])).code).toBe(5);
    },
    slow,
  );
});
