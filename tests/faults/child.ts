import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestTrellis } from "@trellis/testing";
import { eventually } from "@trellis/testing";

/** A program of `children/` in a process of its own, as tests/setup/programs.ts has bundled it. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Lines of its output so far. */
  readonly lines: readonly string[];
  readonly errors: () => string;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** The first line that begins with `start`. */
  line(start: string, timeout?: number): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** Writes a line to its input. */
  tell(line: string): void;
}

export function startChild(trellis: TestTrellis, name: string, ...args: string[]): Child {
  const script = fileURLToPath(new URL(`.cache/${name}.mjs`, import.meta.url));
  const process_ = spawn(process.execPath, ["--unhandled-rejections=strict", script, ...args], {
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...trellis.env() },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const lines: string[] = [];
  let rest = "";
  let errors = "";
  process_.stdout.on("data", (data: Buffer) => {
    const parts = (rest + data.toString()).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  process_.stderr.on("data", (data: Buffer) => {
    errors += data.toString();
  });
  const exited = exitOf(process_);
  return {
    pid: process_.pid ?? 0,
    lines,
    errors: () => errors,
    exited,
    line: (start, timeout = 60_000) =>
      eventually(
        () => {
          const found = lines.find((line) => line.startsWith(start));
          if (found === undefined)
            throw new Error(`no line "${start}" from ${name}: ${lines.join(" / ")} ${errors}`);
          return found;
        },
        { timeout },
      ),
    kill: (signal) => void process_.kill(signal),
    tell: (line) => void process_.stdin.write(`${line}\n`),
    async [Symbol.asyncDispose]() {
      process_.kill("SIGKILL");
      await exited;
    },
  };
}

function exitOf(child: ChildProcess): Child["exited"] {
  return new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
}
