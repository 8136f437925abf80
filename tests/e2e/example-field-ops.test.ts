import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually, startTrellis } from "@trellis/testing";
import { expect, it, onTestFinished } from "vitest";

const folder = join(import.meta.dirname, "../../examples/02-field-ops");
const readme = readFileSync(join(folder, "README.md"), "utf8");
const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

/** Each command of the README with the output that it shows below it. */
const shown = [...readme.matchAll(/```sh\n([^`]*)```(?:\n\n```(text|json)\n([^`]*)```)?/g)].map(
  ([, commands = "", form, output]) => ({ commands: commands.trim().split("\n"), form, output }),
);

it("the example's README shows what its commands do, in their order", async () => {
  await using trellis = await startTrellis();
  const env = { ...process.env, ...trellis.env(), NO_COLOR: "1" };
  for (const name of ["sites", "audit"]) {
    expect(shown.flatMap(({ commands }) => commands)).toContain(`npm run ${name}`);
    const child = spawn(`exec ${scripts[name] ?? ""}`, { shell: true, cwd: folder, env, stdio: "ignore" });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    onTestFinished(async () => {
      child.kill("SIGTERM");
      await exited;
    });
  }
  await eventually(
    async () => {
      const { connections } = (await trellis.controlPlane.core["Core.Connections.List"]({})).orThrow();
      const ours = connections.filter(({ participant }) => participant.id.startsWith("field."));
      expect(ours.map(({ state }) => state)).toEqual(["connected", "connected"]);
    },
    { timeout: 90_000 },
  );
  const compared: string[] = [];
  for (const { commands, form, output } of shown) {
    if (output === undefined) continue;
    const [command = ""] = commands;
    const ran = await run(command, env);
    if (form === "json") expect(JSON.parse(ran)).toEqual(JSON.parse(output));
    else expect(ran).toBe(output);
    compared.push(command);
  }
  expect(compared).toHaveLength(4);
}, 240_000);

it("names only scripts that there are", () => {
  const named = [...readme.matchAll(/npm run ([a-z]+)/g)].map(([, name = ""]) => name);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});

/** Runs a line of the README in its folder. */
async function run(line: string, env: NodeJS.ProcessEnv): Promise<string> {
  const command = line.replace(/^npm run (\w+)$/, (_, name: string) => scripts[name] ?? "");
  const shell = command.replace(/^npx trellis/, `${process.execPath} ../../packages/cli/bin/trellis.mjs`);
  const { stdout, stderr } = await promisify(execFile)("/bin/sh", ["-c", shell], { cwd: folder, env });
  return stdout + stderr;
}
