import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { JobsBinding } from "@trellis/protocol/jobs";
import { deferred } from "../../../packages/runtime/src/lifecycle/deferred.ts";

/** A process of the service beside this one. */
export class JobsChild {
  readonly lines: string[] = [];
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;
  #onLine: (() => void) | undefined;

  constructor(servers: string, binding: JobsBinding, { queue }: { readonly queue: string }) {
    const script = fileURLToPath(new URL("./killed-process.ts", import.meta.url));
    this.#child = spawn(
      process.execPath,
      ["--conditions=@trellis/source", "--import", "tsx", script, servers, JSON.stringify(binding), queue],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    const exit = deferred();
    this.exited = exit.promise;
    this.#child.on("exit", () => {
      exit.resolve();
      this.#onLine?.();
    });
    const read = (chunk: Buffer) => {
      this.lines.push(...chunk.toString().split("\n").filter(Boolean));
      this.#onLine?.();
    };
    this.#child.stdout?.on("data", read);
    this.#child.stderr?.on("data", read);
  }

  /** Waits for a line that begins so; rejects when the process ended without it. */
  async line(beginning: string): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => line.startsWith(beginning));
      if (found !== undefined) return found;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`ended without "${beginning}": ${this.lines.join("\n")}`);
      await new Promise<void>((resolve) => (this.#onLine = resolve));
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.exited;
  }
}
