import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

/** The command in one file, as tests/setup/programs.ts makes it of the sources; what it loads itself is loaded from sources. */
const command = [
  "--conditions=@trellis/source",
  fileURLToPath(new URL("../.cache/main.mjs", import.meta.url)),
];
const repository = fileURLToPath(new URL("../../..", import.meta.url));

// Tests of a file run side by side, since most of a command's time is its start: what they leave goes at the end.
const leftovers: (() => unknown)[] = [];
afterAll(async () => {
  for (const clear of leftovers.splice(0).reverse()) await clear();
});

/** What the process of a command is started with. */
export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string | undefined>;
  /** Written to standard input, which is then closed. Default: nothing. */
  readonly input?: string;
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that goes on: its output so far, and ways to wait for more of it and to end it. */
export class Running {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  stdout = "";
  stderr = "";
  readonly #waiting = new Set<() => void>();

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#seen();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#seen();
    });
    this.exited = new Promise((resolve) => {
      child.once("close", (code) => {
        resolve(code);
        this.#seen();
      });
    });
  }

  get output(): string {
    return this.stdout + this.stderr;
  }

  /** Resolves when the output matches; rejects when the process ends before. */
  async until(pattern: RegExp, timeoutMs = 40_000): Promise<RegExpExecArray> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const match = pattern.exec(this.output);
      if (match !== null) return match;
      const left = deadline - Date.now();
      if (left <= 0 || this.child.exitCode !== null)
        throw new Error(`${String(pattern)} was not seen. Output:\n${this.output}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(left, 500));
        this.#waiting.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals = "SIGINT"): Promise<number | null> {
    if (this.child.exitCode === null) this.child.kill(signal);
    return this.exited;
  }

  #seen(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

/** Starts `trellis` as users do. It is ended with the file's tests. */
export function startCli(args: readonly string[], options: RunOptions = {}): Running {
  return startNode([...command, ...args], options);
}

/** Starts a TypeScript file of this repository. */
export function startFile(file: string, options: RunOptions = {}): Running {
  const flags = ["--conditions=@trellis/source", "--import", "tsx", join(repository, file)];
  return startNode(flags, { cwd: repository, ...options });
}

function startNode(args: readonly string[], { cwd, env, input }: RunOptions): Running {
  const child = spawn(process.execPath, args, { cwd, env: { ...cleanEnv(), ...env }, stdio: "pipe" });
  const running = new Running(child);
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  leftovers.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), 8_000);
    await running.exited;
    clearTimeout(force);
  });
  return running;
}

/** Runs `trellis` to its end. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const running = startCli(args, options);
  const code = await running.exited;
  return { code, stdout: running.stdout, stderr: running.stderr };
}

/** Runs a line of shell in which `$TRELLIS` is the command. */
export async function runShell(line: string, options: RunOptions = {}): Promise<Ran> {
  const { cwd, env } = options;
  const child = spawn("/bin/bash", ["-c", `set -o pipefail; ${line}`], {
    cwd,
    env: { ...cleanEnv(), TRELLIS: [process.execPath, ...command].join(" "), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const running = new Running(child);
  leftovers.push(() => killGroup(child.pid));
  const code = await running.exited;
  return { code, stdout: running.stdout, stderr: running.stderr };
}

/** Ends what a line of shell has left, when a test gave it up. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended, as it should.
  }
}

/** A folder of the test's own, below one whose name is hard on programs that build commands from texts. */
export function makeFolder(name = "a b"): string {
  const parent = mkdtempSync(join(tmpdir(), "trellis-cli-"));
  leftovers.push(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, name);
}

/** The environment without anything that would lead to a platform or change the output. */
function cleanEnv(): Record<string, string | undefined> {
  const env: Record<string, string | undefined> = { ...process.env };
  for (const key of Object.keys(env)) {
    if (key.startsWith("TRELLIS_") && key !== "TRELLIS_NATS_SERVER") delete env[key];
    if (key === "NO_COLOR" || key === "FORCE_COLOR" || key === "NODE_OPTIONS" || key === "VITEST")
      delete env[key];
  }
  return env;
}

/** True while a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
