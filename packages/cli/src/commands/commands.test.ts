import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectedService } from "@trellis/runtime/service";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { greeterService, NameTaboo } from "../../../../examples/01-hello/contracts/greeter.ts";
import { translatorService } from "../../../../examples/01-hello/contracts/translator.ts";
import { makeFolder, type RunOptions, runCli, runShell, startCli } from "../cli.test-kit.ts";

const slow = 240_000;
let trellis: TestTrellis;
/** Counts that are under way, by how far they go. */
const counting = new Set<number>();

beforeAll(async () => {
  trellis = await startTrellis();
  await trellis.service(greeterService, ({ handle }: ConnectedService<typeof greeterService>) => {
    handle.rpc.greeter.hello(({ input }) => {
      if (input.name === "Voldemort") return new NameTaboo({ data: { name: input.name, suggestion: "Tom" } });
      return { text: `Hello, ${input.name}!` };
    });
    handle.rpc.greeter.count(
      ({ input, context }) =>
        new Promise((resolve) => {
          counting.add(input.to);
          context.signal.addEventListener("abort", () => {
            counting.delete(input.to);
            resolve({ counted: 0 });
          });
        }),
    );
  });
  await trellis.service(translatorService, ({ handle }) => {
    handle.rpc.words.translate(() => ({ word: "\u001b[31mred" }));
  });
}, 30_000);
afterAll(() => trellis.stop());

const run = (args: readonly string[], options: RunOptions = {}) =>
  runCli(args, { ...options, env: { ...trellis.env(), ...options.env } });
const shell = (line: string, env: Record<string, string> = {}) =>
  runShell(line, { env: { ...trellis.env(), ...env } });

/** The translator's contract under names of its own: a second provider of one API would be ambiguous. */
function otherTranslator(): object {
  const [api] = translatorService.artifact.implements;
  return {
    ...translatorService.artifact,
    id: "acme.other-translator",
    implements: [{ ...api, id: "acme.other@v1" }],
  };
}

describe.concurrent("trellis call", () => {
  it(
    "calls what it learns from the platform, and gives what the answer is",
    async () => {
      const answered = await run(["call", "Greeter.Hello", '{"name":"Ada"}']);
      expect(answered).toEqual({ code: 0, stdout: '{"text":"Hello, Ada!"}\n', stderr: "" });
      const input = { input: '{"name":"Bo"}' };
      const read = await run(["call", "hello.greeter@v1.Greeter.Hello", "-", "--json"], input);
      expect(JSON.parse(read.stdout)).toEqual({ text: "Hello, Bo!" });
      const own = await run(["call", "Core.Deployments.Get", '{"id":"hello.greeter-service"}']);
      expect(JSON.parse(own.stdout).deployment.name).toBe("hello.greeter-service");
    },
    slow,
  );

  it(
    "tells a declared error, a wrong input and a time-out apart",
    async () => {
      const declared = await run(["call", "Greeter.Hello", '{"name":"Voldemort"}', "--json"]);
      expect(declared).toMatchObject({ code: 6, stdout: "" });
      const { error } = JSON.parse(declared.stderr) as { error: { type: string; data: unknown } };
      expect(error).toMatchObject({ type: "NameTaboo", data: { suggestion: "Tom" } });
      const invalid = await run(["call", "Greeter.Hello", '{"name":""}']);
      expect(invalid).toMatchObject({ code: 2, stdout: "" });
      expect(invalid.stderr).toContain("/name");
      const broken = await run(["call", "Greeter.Hello", "{name:Ada}"]);
      expect(broken.code).toBe(2);
      expect(broken.stderr).toContain("Quote it for the shell");
      const late = await run(["call", "Greeter.Count", '{"to":1000}', "--timeout", "200"]);
      expect(late.code).toBe(7);
      expect((await run(["call", "Greeter.Count", "--timeout", "soon"])).code).toBe(2);
    },
    slow,
  );

  it(
    "gives a call up at Ctrl-C, at the other end too",
    async () => {
      const running = startCli(["call", "Greeter.Count", '{"to":77}'], { env: trellis.env() });
      await eventually(() => counting.has(77), { timeout: 30_000 });
      expect(await running.end("SIGINT")).toBe(130);
      expect(running.output).toBe("");
      await eventually(() => !counting.has(77));
    },
    slow,
  );

  it(
    "finds what was meant when it was spelled wrong",
    async () => {
      const near = await run(["call", "Greeter.Helo"]);
      expect(near.code).toBe(5);
      expect(near.stderr).toContain("Did you mean Greeter.Hello?");
      const far = await run(["call", "hello.greter@v1.Greeter.Hello"]);
      expect(far.stderr).toContain("Did you mean hello.greeter@v1?");
      const command = await run(["parcitipants"]);
      expect(command).toMatchObject({ code: 2, stdout: "" });
      expect(command.stderr).toContain("participants");
    },
    slow,
  );

  it(
    "leaves the platform as it was, apart from the participant that may call",
    async () => {
      await run(["call", "Words.Translate", '{"word":"hello","language":"de"}']);
      const all = JSON.parse((await run(["participants", "ls", "--json", "--all"])).stdout) as {
        id: string;
      }[];
      expect(all.map(({ id }) => id)).toContain("cli-call.hello.translator-v1");
      const shown = await run(["participants", "ls"]);
      expect(shown.stdout).not.toContain("cli-call");
      expect((await run(["services"])).stdout).not.toContain("trellis.cli");
    },
    slow,
  );
});

describe.concurrent("output", () => {
  it(
    "is without colours in a pipe and with NO_COLOR, and harmless on a terminal",
    async () => {
      const escape = "\u001b";
      expect((await run(["services"])).stdout).not.toContain(escape);
      expect((await run(["services"], { env: { FORCE_COLOR: "1" } })).stdout).toContain(`${escape}[1m`);
      const terminal = (env: string) => shell(`script -qec "${env} $TRELLIS services" /dev/null`);
      expect((await terminal("TERM=xterm")).stdout).toContain(`${escape}[1m`);
      expect((await terminal("TERM=xterm NO_COLOR=1")).stdout).not.toContain(`${escape}[1m`);
      const hostile = ["call", "Words.Translate", '{"word":"hello","language":"de"}', "--table"];
      expect((await run(hostile)).stdout).not.toContain(escape);
    },
    slow,
  );

  it(
    "ends quietly when its reader leaves early, or when there is none",
    async () => {
      const lines = await shell(
        "for i in 1 2 3; do $TRELLIS participants show hello.greeter-service | head -1; done",
      );
      expect(lines).toMatchObject({ code: 0, stderr: "" });
      expect(lines.stdout.match(/hello.greeter-service/g)).toHaveLength(3);
      // A reader that is gone before the first byte.
      expect(await shell("$TRELLIS services --json | true")).toMatchObject({ code: 0, stderr: "" });
      expect(await shell("$TRELLIS services >&-")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    },
    slow,
  );

  it(
    "is only JSON with --json, also when there is nothing",
    async () => {
      for (const args of [["participants", "ls"], ["svc", "ls"], ["services"], ["doctor"]]) {
        const ran = await run([...args, "--json"]);
        expect(ran.code).toBe(0);
        expect(Array.isArray(JSON.parse(ran.stdout))).toBe(true);
      }
      const before = await run(["--json", "svc", "ls", "hello.greeter-service"]);
      expect(JSON.parse(before.stdout)).toHaveLength(1);
    },
    slow,
  );
});

describe.concurrent("other commands", () => {
  it(
    "install contracts from modules and JSON, and say what is wrong with a file",
    async () => {
      const folder = makeFolder();
      mkdirSync(folder, { recursive: true });
      const path = join(folder, "shop.json");
      writeFileSync(path, JSON.stringify(otherTranslator()));
      const installed = await run(["participants", "install", path, "--json"]);
      expect(JSON.parse(installed.stdout)).toMatchObject([{ id: "acme.other-translator", changed: true }]);
      expect((await run(["participants", "install", path])).stdout).toContain("was installed already");
      expect((await run(["svc", "create", "acme.other-translator"])).code).toBe(0);
      expect((await run(["svc", "create", "acme.other-translator"])).code).toBe(6);
      expect((await run(["svc", "apply", "acme.other-translator"])).code).toBe(0);
      expect((await run(["svc", "disable", "acme.other-translator"])).stdout).toContain("is disabled");
      writeFileSync(path, "{");
      expect((await run(["participants", "install", path])).code).toBe(2);
      // As `npm init` leaves a project: its package is not of type "module".
      writeFileSync(join(folder, "package.json"), "{}");
      const contract = import.meta.resolve("@trellis/contract");
      const lines = [
        `import { defineService } from ${JSON.stringify(contract)};`,
        'export const one = defineService("acme.named", {});',
        'export default defineService("acme.default", {});',
      ];
      writeFileSync(join(folder, "both.ts"), lines.join("\n"));
      expect(await run(["participants", "install", join(folder, "both.ts")])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^\+ acme\.named {2}revision 1$[^]*^\+ acme\.default {2}revision 1$/m),
        stderr: "",
      });
      writeFileSync(join(folder, "none.ts"), "export const one: number = 1;\n");
      const none = await run(["participants", "install", join(folder, "none.ts")]);
      expect(none.stderr).toContain("exports no participant");
      expect((await run(["participants", "install", join(folder, "missing.ts")])).stderr).toContain(
        "no file",
      );
    },
    slow,
  );

  it(
    "say that there is no platform, and what to do",
    async () => {
      const folder = makeFolder();
      mkdirSync(join(folder, ".trellis"), { recursive: true });
      const nowhere = await runCli(["services"], { cwd: folder });
      expect(nowhere).toMatchObject({ code: 3, stdout: "" });
      expect(nowhere.stderr).toContain("trellis dev");
      writeFileSync(join(folder, ".trellis", "dev.json"), "{}");
      expect((await runCli(["services"], { cwd: folder })).stderr).toContain(
        "is not what `trellis dev` writes",
      );
      const doctor = await runCli(["doctor"], { cwd: folder });
      expect(doctor.code).toBe(1);
      expect(doctor.stdout).toMatch(/^fail {2}platform/m);
      const away = await runCli(["services"], {
        env: { ...trellis.env(), TRELLIS_URL: "http://127.0.0.1:9" },
      });
      expect(away.code).toBe(3);
      const bare = await runCli(["services"], { env: { TRELLIS_URL: trellis.url } });
      expect(bare.stderr).toContain("--credential");
      const wrong = await run(["services"], { env: { TRELLIS_DEV_TOKEN: "x".repeat(43) } });
      expect(wrong.code).toBe(4);
    },
    slow,
  );

  it(
    "doctor measures what is there",
    async () => {
      const ran = await run(["doctor"]);
      expect(ran.code).toBe(0);
      for (const check of ["node", "nats-server", "platform", "control plane", "clocks", "connection"])
        expect(ran.stdout).toMatch(new RegExp(`^ok {4}${check}`, "m"));
    },
    slow,
  );

  it(
    "have examples in their help",
    async () => {
      for (const args of [
        ["dev"],
        ["call"],
        ["server"],
        ["server", "init"],
        ["nats", "config"],
        ["svc", "provision"],
      ]) {
        const ran = await runCli([...args, "--help"]);
        expect(ran).toMatchObject({ code: 0, stderr: "" });
        expect(ran.stdout).toContain("Examples:");
      }
      expect((await runCli(["--help"])).stdout).toContain("Exit codes:");
      expect((await runCli(["svc"])).code).toBe(2);
    },
    slow,
  );
});
