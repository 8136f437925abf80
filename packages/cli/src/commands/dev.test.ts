import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { findNatsServer } from "@trellis/control-plane/nats";
import { eventually } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { isAlive, makeFolder, runCli, runShell, startCli } from "../cli.test-kit.ts";

const ready = /platform {2}(\S+)/;
const slow = 240_000;

const service = join(import.meta.dirname, "../../../../examples/01-hello/services/translator.ts");

function project(name?: string): string {
  const folder = makeFolder(name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

function devFile(folder: string): { url: string; token: string; root: string; pid: number } {
  return JSON.parse(readFileSync(join(folder, ".trellis", "dev.json"), "utf8"));
}

function natsPid(folder: string): number {
  return Number(readFileSync(join(folder, ".trellis", "data", "nats", "nats.pid"), "utf8"));
}

describe("trellis dev", () => {
  it(
    "leaves a private way in, which commands find from folders below, and nothing when it is stopped",
    async () => {
      const folder = project();
      const running = startCli(["dev"], { cwd: folder });
      const [, url] = await running.until(ready);
      const path = join(folder, ".trellis", "dev.json");
      expect(devFile(folder)).toMatchObject({ url, pid: running.child.pid });
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(statSync(join(folder, ".trellis")).mode & 0o777).toBe(0o700);
      expect(statSync(join(folder, ".trellis", "data", "dev-token")).mode & 0o777).toBe(0o600);
      const below = join(folder, "packages", "orders");
      mkdirSync(below, { recursive: true });
      const services = await runCli(["services"], { cwd: below });
      expect(services).toMatchObject({ code: 0, stderr: "" });
      expect(services.stdout).toContain("trellis.platform");
      const second = await runCli(["dev"], { cwd: folder });
      expect(second.code).toBe(1);
      expect(second.stderr).toContain(`already at ${url} (process ${running.child.pid})`);
      const pid = natsPid(folder);
      // A key press that arrives twice, from the terminal and from npx, does not cut the closing off.
      running.child.kill("SIGINT");
      await pause(10);
      expect(await running.end("SIGINT")).toBe(0);
      expect(existsSync(path)).toBe(false);
      expect(isAlive(pid)).toBe(false);
    },
    slow,
  );

  it(
    "is found to be gone after a kill, takes its broker along, and starts again where it was",
    async () => {
      const folder = project();
      const first = startCli(["dev"], { cwd: folder });
      const [, url] = await first.until(ready);
      const [pid, { token }] = [natsPid(folder), devFile(folder)];
      await first.end("SIGKILL");
      await eventually(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000 });
      const gone = await runCli(["services"], { cwd: folder });
      expect(gone.code).toBe(3);
      expect(gone.stderr).toContain("does not run any more");
      expect(gone.stderr).toContain("trellis dev");
      const again = startCli(["dev"], { cwd: folder });
      const [, secondUrl] = await again.until(ready);
      expect(secondUrl).toBe(url);
      expect(devFile(folder).token).toBe(token);
      expect(await again.end("SIGTERM")).toBe(0);
      const fresh = startCli(["dev", "--fresh", "--json"], { cwd: folder });
      await fresh.until(/"ready"/);
      expect(devFile(folder).token).not.toBe(token);
      for (const line of fresh.stdout.trim().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
    },
    slow,
  );

  it(
    "runs an entry, says each step once, and ends with the entry's exit code",
    async () => {
      const folder = project();
      const running = startCli(["dev", service], { cwd: folder });
      await running.until(/provisioned an instance of hello.translator-service/);
      const connected = async () => {
        const { stdout } = await runCli(["services"], { cwd: folder });
        expect(stdout).toContain("hello.translator-service");
      };
      await eventually(connected, { timeout: 20_000 });
      expect(running.stdout.match(/✓ installed hello.translator-service/g)).toHaveLength(1);
      expect(await running.end("SIGINT")).toBe(0);
      writeFileSync(join(folder, "fails.ts"), "const code: number = 3; process.exit(code);\n");
      expect((await runCli(["dev", "fails.ts"], { cwd: folder })).code).toBe(3);
      writeFileSync(join(folder, "package.json"), "{}");
      writeFileSync(join(folder, "waits.ts"), "await Promise.resolve(); export {};\n");
      const waits = await runCli(["dev", "waits.ts"], { cwd: folder });
      expect(waits).toMatchObject({ code: 1 });
      expect(waits.stderr).toContain("npm pkg set type=module");
      expect(await runCli(["dev", "missing.ts"], { cwd: folder })).toMatchObject({ code: 2, stdout: "" });
    },
    slow,
  );

  it(
    "starts the entry again when a file changed, once the old one has ended; a kill leaves no entry",
    async () => {
      const folder = project();
      const text = (word: string) => `
      console.log("${word} begins", process.pid, process.env.TRELLIS_URL?.startsWith("http"));
      const alive = setInterval(() => {}, 1000);
      process.once("SIGTERM", () => setTimeout(() => { console.log("${word} ends"); clearInterval(alive); }, 300));\n`;
      mkdirSync(join(folder, "lib"));
      writeFileSync(join(folder, "lib", "main.ts"), text("one"));
      const running = startCli(["dev", "lib/main.ts", "--watch"], { cwd: folder });
      await running.until(/one begins \d+ true/);
      writeFileSync(join(folder, "lib", "main.ts"), text("two"));
      await running.until(/two begins \d+ true/);
      expect(running.stdout).toMatch(/one begins[^]*one ends[^]*two begins/);
      expect(running.output).toContain("lib/main.ts changed");
      writeFileSync(join(folder, "lib", "main.ts"), "throw new Error('broken')");
      await running.until(/entry ended \(1\); waiting for a change/);
      mkdirSync(join(folder, "lib", "new"));
      writeFileSync(join(folder, "lib", "main.ts"), text("three"));
      const [, pid] = await running.until(/three begins (\d+)/);
      await running.end("SIGKILL");
      await eventually(() => expect(isAlive(Number(pid))).toBe(false), { timeout: 10_000 });
    },
    slow,
  );

  it.each(['q"uote', "back\\slash", "ünï $HOME `x`", "l".repeat(180)])(
    "works in a folder called %s",
    async (name) => {
      const folder = project(name);
      const { path } = await findNatsServer({ fetch: false });
      // Without a home there is no cache either.
      const env = { HOME: undefined, XDG_CACHE_HOME: undefined, TRELLIS_NATS_SERVER: path };
      const running = startCli(["dev"], { cwd: folder, env });
      await running.until(ready);
      expect((await runCli(["services", "--json"], { cwd: folder, env })).code).toBe(0);
      expect(await running.end()).toBe(0);
    },
    slow,
  );

  it(
    "is private under any umask, and stops quietly when nobody reads its output",
    async () => {
      const folder = project();
      // It learns of it with the next line that it writes: here, that the service was installed.
      const line = `umask 000; $TRELLIS dev ${service} 2>/dev/null | head -1`;
      const ended = await runShell(line, { cwd: folder });
      expect(ended).toMatchObject({ code: 0, stderr: "" });
      expect(existsSync(join(folder, ".trellis", "dev.json"))).toBe(false);
      for (const file of ["data/dev-token", "data/keys.json"])
        expect(statSync(join(folder, ".trellis", file)).mode & 0o077).toBe(0);
      expect(statSync(join(folder, ".trellis", "data")).mode & 0o077).toBe(0);
    },
    slow,
  );
});
