import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually, startTrellis } from "@trellis/testing";
import { afterEach, describe, expect, it } from "vitest";

const here = dirname(fileURLToPath(import.meta.url));
const readme = readFileSync(join(here, "..", "..", "README.md"), "utf8");
const flags = ["--conditions=@trellis/source", "--import", "tsx"];

/** The code that the README shows, by file name. */
const shown = [...readme.matchAll(/```ts file=(\S+)\n([\s\S]*?)```/g)].map(([, name = "", code = ""]) => ({
  name,
  code,
}));

let folder: string | undefined;
let service: ChildProcess | undefined;
let billing: ChildProcess | undefined;

afterEach(async () => {
  for (const child of [service, billing]) {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) continue;
    const exited = once(child, "exit");
    child.kill();
    await exited;
  }
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

describe("the README", () => {
  it("shows a contract, a service and an app that work as they stand", async () => {
    expect(shown.map(({ name }) => name)).toEqual(["contract.ts", "service.ts", "app.ts", "billing.ts"]);
    // Beside the tests, so that the packages resolve as they would in a project.
    folder = mkdtempSync(join(here, ".readme-"));
    for (const { name, code } of shown) writeFileSync(join(folder, name), code);
    await using trellis = await startTrellis();
    const env = { ...process.env, ...trellis.env() };
    service = spawn(process.execPath, [...flags, "service.ts"], { cwd: folder, env, stdio: "ignore" });
    // As a person would: the app is run once the service is up, which on a cold machine takes its time.
    await eventually(
      async () => {
        const { connections } = (await trellis.controlPlane.core["Core.Connections.List"]({})).orThrow();
        expect(connections.map(({ participant }) => participant.id)).toContain("acme.orders-service");
      },
      { timeout: 60_000 },
    );
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, "app.ts"], {
      cwd: folder,
      env,
    });
    expect(stdout.trim().split("\n")).toEqual(["ordered tea-1", "only 5 left"]);
    billing = spawn(process.execPath, [...flags, "billing.ts"], { cwd: folder, env });
    let said = "";
    billing.stdout?.on("data", (data: Buffer) => {
      said += data.toString();
    });
    await eventually(() => expect(said).toBe("the bill of tea-1 is out\n"), { timeout: 60_000 });
  }, 150_000);

  it("names the two commands that a newcomer needs", () => {
    expect(readme).toContain("npm run quickstart");
    expect(readme).toContain("npm test");
  });
});
