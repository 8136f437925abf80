import { execFileSync, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "@trellis/testing";
import { describe, expect, it, onTestFinished } from "vitest";

const root = join(import.meta.dirname, "../..");
const slow = 90_000;

/** The quickstart as `npm run quickstart` starts it; on a terminal of its own when `tty` is set. */
function start(args: readonly string[], options: { tty?: boolean } = {}) {
  const command = [process.execPath, "scripts/quickstart.mjs", ...args];
  // `exec`: a shell that stays (dash) answers a Ctrl-C by an end of its own, with code 130 whatever ours was.
  const [file = "", ...rest] =
    options.tty === true ? ["script", "-qec", `exec ${command.join(" ")}`, "/dev/null"] : command;
  const child = spawn(file, rest, { cwd: root, stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await exited;
  });
  const until = (text: string) =>
    eventually(() => expect(output).toContain(text), { timeout: 60_000 }).then(() => output);
  return { child, exited, until, output: () => output };
}

function childrenOf(pid: number): number[] {
  try {
    return execFileSync("pgrep", ["-P", String(pid)], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map(Number);
  } catch {
    return [];
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith("trellis-quickstart-"));

describe("npm run quickstart", () => {
  it(
    "ends by itself without a terminal, also twice at the same time",
    async () => {
      const both = [start([]), start(["--once"])];
      const codes = await Promise.all(both.map(({ exited }) => exited));
      for (const { output } of both) {
        for (const text of ["Hello, Ada!", "NameTaboo", "Bonjour, Ada!", "nobody waits any more", "p99"])
          expect(output()).toContain(text);
        expect(output()).not.toContain("\u001b[");
      }
      expect(codes).toEqual([0, 0]);
    },
    slow,
  );

  it(
    "stays up on a terminal, where the command finds it, until Ctrl-C",
    async () => {
      const running = start([], { tty: true });
      await running.until("It stays up until Ctrl-C");
      await running.until("npx trellis dev");
      const services = execFileSync(process.execPath, ["packages/cli/bin/trellis.mjs", "services"], {
        cwd: root,
        encoding: "utf8",
      });
      expect(services).toContain("hello.greeter-service");
      // A key press arrives twice below `npm run`, which passes on what the terminal has sent to everybody already.
      running.child.stdin.write("\u0003");
      await pause(10);
      running.child.stdin.write("\u0003");
      expect(await running.exited).toBe(0);
    },
    slow,
  );

  it(
    "leaves no process behind when it is killed",
    async () => {
      const before = new Set(folders());
      const running = start([]);
      await running.until("a client is connected");
      const below = childrenOf(running.child.pid ?? 0);
      const deeper = below.flatMap(childrenOf);
      expect(below.length + deeper.length).toBeGreaterThanOrEqual(4);
      running.child.kill("SIGKILL");
      await eventually(() => expect([...below, ...deeper].filter(alive)).toEqual([]), { timeout: 15_000 });
      const left = folders().filter((name) => !before.has(name));
      expect(left.length).toBeLessThanOrEqual(2);
    },
    slow,
  );

  it(
    "explains itself",
    async () => {
      const help = start(["--help"]);
      expect(await help.exited).toBe(0);
      expect(help.output()).toContain("--once");
      const wrong = start(["--onec"]);
      expect(await wrong.exited).toBe(1);
      expect(wrong.output()).toContain("--onec is not an option");
    },
    slow,
  );
});
