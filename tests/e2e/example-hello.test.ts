import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually, startTrellis } from "@trellis/testing";
import { expect, it, onTestFinished } from "vitest";

const folder = join(import.meta.dirname, "../../examples/01-hello");
const readme = readFileSync(join(folder, "README.md"), "utf8");
const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

/** Each command of the README with the output that it shows below it. */
const shown = [...readme.matchAll(/```sh\n([^`]*)```(?:\n\n```(text|json)\n([^`]*)```)?/g)].map(
  ([, commands = "", form, output]) => ({ commands: commands.trim().split("\n"), form, output }),
);

it("the example's README shows what its commands do", async () => {
  await using trellis = await startTrellis();
  const env = { ...process.env, ...trellis.env(), NO_COLOR: "1" };
  const started = shown
    .flatMap(({ commands }) => commands)
    .filter((line) => /^npm run (greeter|translator)$/.test(line));
  expect(started).toEqual(["npm run translator", "npm run greeter"]);
  for (const line of started) runInBackground(scripts[line.slice("npm run ".length)] ?? "", env);
  await eventually(
    async () => {
      const { connections } = (await trellis.controlPlane.core["Core.Connections.List"]({})).orThrow();
      const ours = connections.filter(({ participant }) => participant.id.startsWith("hello."));
      expect(ours.map(({ state }) => state)).toEqual(["connected", "connected"]);
    },
    { timeout: 60_000 },
  );
  let compared = 0;
  for (const { commands, form, output } of shown) {
    if (output === undefined) continue;
    expect(commands).toHaveLength(1);
    const ran = await run(commands[0] ?? "", env);
    if (form === "json") expect(JSON.parse(ran)).toEqual(JSON.parse(output));
    else expect(ran).toContain(output.trim());
    compared += 1;
  }
  expect(compared).toBe(3);
}, 150_000);

it("names only scripts that there are", () => {
  const named = [...readme.matchAll(/npm run ([a-z]+)/g)].map(([, name]) => name);
  expect(named.filter((name) => name !== "quickstart" && !(name !== undefined && name in scripts))).toEqual(
    [],
  );
});

function runInBackground(command: string, env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(`exec ${command}`, { shell: true, cwd: folder, env, stdio: "ignore" });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  return child;
}

/** Output and error output: the README shows what a person sees, whatever the exit code. */
async function run(line: string, env: NodeJS.ProcessEnv): Promise<string> {
  const command = line.replace(/^npm run (\w+)$/, (_, name: string) => scripts[name] ?? "");
  const shell = command.replace(/^npx trellis/, `${process.execPath} ../../packages/cli/bin/trellis.mjs`);
  try {
    const { stdout, stderr } = await promisify(execFile)("/bin/sh", ["-c", shell], { cwd: folder, env });
    return stdout + stderr;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    return stdout + stderr;
  }
}
