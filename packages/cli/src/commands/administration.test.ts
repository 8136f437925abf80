import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { startTrellis, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { greeterService } from "../../../../examples/01-hello/contracts/greeter.ts";
import { translatorService } from "../../../../examples/01-hello/contracts/translator.ts";
import { Terminal } from "../output/terminal.ts";
import { runCli } from "../run-cli.ts";

// In this process: what these commands do is asked of the platform, and a process each would only cost time.

let trellis: TestTrellis;
beforeAll(async () => {
  trellis = await startTrellis();
  await trellis.service(greeterService, ({ handle }) => {
    handle.rpc.greeter.hello(({ input }) => ({ text: input.name }));
  });
  await trellis.service(translatorService, ({ handle }) => {
    handle.rpc.words.translate(() => ({ word: "Ciao" }));
  });
});
afterAll(() => trellis?.stop());

async function run(args: readonly string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const env = trellis.env();
  const code = await runCli(
    args,
    {
      terminal: new Terminal({ stdout, stderr, env, json: args.includes("--json") }),
      env,
      stdin: new PassThrough(),
      folder: import.meta.dirname,
      interruptedBy: () => undefined,
      holdSignals: () => new AbortController().signal,
    },
    "0.0.0",
  );
  stdout.end();
  stderr.end();
  return { code, stdout: await text(stdout), stderr: await text(stderr) };
}

describe("trellis svc bind", () => {
  it("says which of two deployments provides an API, lists the choices and withdraws them", async () => {
    const id = "hello.greeter-service";
    const [api] = translatorService.artifact.implements;
    const bind = (...args: string[]) => run(["svc", "bind", ...args]);
    expect(await bind(id)).toMatchObject({ code: 0, stdout: "" });
    const bound = await bind(id, api?.id ?? "", "hello.translator-service");
    expect(bound.stdout).toMatch(/hello\.translator@v1 +hello\.translator-service/);
    const listed = JSON.parse((await bind(id, "--json")).stdout) as object[];
    expect(listed).toMatchObject([{ api: api?.id, name: "hello.translator-service" }]);
    const half = await bind(id, api?.id ?? "");
    expect(half).toMatchObject({ code: 2, stdout: "" });
    expect(half.stderr).toContain("--none");
    const foreign = await bind(id, api?.id ?? "", id);
    expect(foreign).toMatchObject({ code: 6, stdout: "" });
    expect(foreign.stderr).toContain(`"${id}" does not provide hello.translator@v1`);
    expect((await bind(id, api?.id ?? "", "hello.nobody")).code).toBe(5);
    expect(JSON.parse((await bind(id, api?.id ?? "", "--none", "--json")).stdout)).toEqual([]);
  });
});

describe("trellis grants", () => {
  it("are set as a whole, action by action, and listed", async () => {
    const id = "hello.translator-service";
    const grants = (...args: string[]) => run(["grants", ...args]);
    expect((await grants("ls", id)).stdout).toMatch(/hello\.translator-service +0 +nothing/);
    const set = await grants("set", id, "Core.Apis.List", "Core.Connections.List");
    expect(set.stdout).toContain("may call Core.Apis.List, Core.Connections.List  (revision 1)");
    const [row] = JSON.parse((await grants("ls", "--json")).stdout) as object[];
    expect(row).toMatchObject({ name: id, revision: 1, rpc: ["Core.Apis.List", "Core.Connections.List"] });
    const stale = await grants("set", id, "Core.Apis.List", "--revision", "0");
    expect(stale).toMatchObject({ code: 6, stdout: "" });
    const slip = await grants("set", id, "Core.Conections.List");
    expect(slip).toMatchObject({ code: 2, stdout: "" });
    expect(slip.stderr).toContain("Did you mean Core.Connections.List?");
    expect((await grants("set", id)).stderr).toContain("--none");
    expect((await grants("set", id, "--none")).stdout).toContain("may call nothing  (revision 2)");
    expect((await grants("set", "hello.nobody", "Core.Apis.List")).code).toBe(5);
  });
});

describe("a wrong command line", () => {
  it("is told what to do next, in JSON when that was asked for", async () => {
    const told = await run(["svc", "create"]);
    expect(told).toMatchObject({ code: 2, stdout: "" });
    expect(told.stderr).toContain("missing required argument 'participant'");
    expect(told.stderr).toContain("`trellis svc create --help`");
    const json = await run(["--json", "svc", "crate"]);
    const { error } = JSON.parse(json.stderr) as { error: { message: string; hint: string } };
    expect(error.message).toBe("unknown command 'crate'");
    expect(error.hint).toMatch(/Did you mean create\?.*`trellis svc --help`/);
    const file = await run(["dev", "nowhere.ts"]);
    expect(file.stderr).toMatch(/There is no file nowhere\.ts[^]*Paths start at/);
  });
});
