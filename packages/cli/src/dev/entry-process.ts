import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { packageFile } from "../package-file.ts";

/** How a process ended: its code, or the signal that ended it. */
export interface EntryExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface EntryOptions {
  /** Path of a .ts or .js file. */
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Hears each line that it writes. Default: its output goes where ours goes. */
  readonly onLine?: (line: string) => void;
}

const graceMs = 12_000;
const leash = pathToFileURL(packageFile("bin/leash.mjs")).href;
const inRepository = existsSync(packageFile("../../tsconfig.base.json"));

/** A user's process below ours. It cannot outlive us: a pipe tells it when we are gone (see leash.mjs). */
export class EntryProcess {
  readonly exited: Promise<EntryExit>;
  readonly #child: ChildProcess;
  #stopping: Promise<EntryExit> | undefined;

  constructor({ file, args, folder, env, onLine }: EntryOptions) {
    const flags = [
      ...(inRepository ? ["--conditions=@trellis/source"] : []),
      "--import",
      leash,
      "--import",
      import.meta.resolve("tsx"),
    ];
    const output = onLine === undefined ? "inherit" : "pipe";
    this.#child = spawn(process.execPath, [...flags, file, ...args], {
      cwd: folder,
      env,
      stdio: [onLine === undefined ? "inherit" : "ignore", output, output, "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream !== null && onLine !== undefined) createInterface(stream).on("line", onLine);
    }
    this.exited = new Promise((resolve) => {
      this.#child.once("error", () => resolve({ code: 1, signal: null }));
      this.#child.once("exit", (code, signal) => resolve({ code, signal }));
    });
  }

  /** Asks it to end, and forces it after the grace time. Resolves when it is gone. */
  stop(): Promise<EntryExit> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<EntryExit> {
    this.#child.kill("SIGTERM");
    const force = setTimeout(() => this.#child.kill("SIGKILL"), graceMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(force);
    }
  }
}

/** The exit code that a shell would show for it. */
export function codeOfExit({ code, signal }: EntryExit): number {
  if (code !== null) return code;
  return signal === "SIGINT" ? 130 : signal === "SIGKILL" ? 137 : 143;
}
