import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Terminal } from "../output/terminal.ts";
import { codeOfExit, type EntryExit, type EntryOptions, EntryProcess } from "./entry-process.ts";
import { FileWatch } from "./file-watch.ts";

export interface RunEntryOptions extends EntryOptions {
  readonly watch: boolean;
  readonly terminal: Terminal;
  /** Ends the run. */
  readonly signal: AbortSignal;
}

/**
 * Runs an entry until it ends or is to stop; the result is the exit code. With `watch` it is started again
 * whenever a source file changed, and a crash waits for the next change. The next process begins when the last
 * one has ended: both would serve, and one of them an old contract.
 */
export async function runEntry(options: RunEntryOptions): Promise<number> {
  const { signal, terminal } = options;
  if (!options.watch) return runOnce(options);
  let changed: ((file: string | undefined) => void) | undefined;
  let pending: string | undefined;
  const watch = new FileWatch(options.folder, (file) => {
    pending = file;
    changed?.(file);
  });
  const stop = () => changed?.(undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    while (!signal.aborted) {
      pending = undefined;
      const entry = new EntryProcess(options);
      void entry.exited.then((exit) => {
        if (pending !== undefined || signal.aborted) return;
        explain(options, exit);
        terminal.note(
          terminal.noteColours.yellow(`• entry ended (${codeOfExit(exit)}); waiting for a change`),
        );
      });
      await new Promise<string | undefined>((resolve) => {
        changed = resolve;
        if (signal.aborted) resolve(undefined);
      });
      changed = undefined;
      await entry.stop();
      const file: string | undefined = pending;
      if (file !== undefined) terminal.note(`• ${relative(options.folder, file)} changed, starting again`);
    }
    return 0;
  } finally {
    watch.close();
    signal.removeEventListener("abort", stop);
  }
}

async function runOnce(options: RunEntryOptions): Promise<number> {
  const entry = new EntryProcess(options);
  const stop = () => void entry.stop();
  if (options.signal.aborted) stop();
  options.signal.addEventListener("abort", stop, { once: true });
  const exit = await entry.exited;
  if (!options.signal.aborted) explain(options, exit);
  options.signal.removeEventListener("abort", stop);
  // Ended because we asked: that is success, however it ended.
  return options.signal.aborted ? 0 : codeOfExit(exit);
}

/** Node's own message about a top-level `await` in such a package does not say what to do. */
function explain({ file, terminal }: RunEntryOptions, exit: EntryExit): void {
  if (codeOfExit(exit) === 0 || !/\.[jt]s$/.test(file)) return;
  const manifest = manifestOf(file);
  if (manifest === undefined || isModule(manifest)) return;
  terminal.note(
    terminal.noteColours.yellow(
      `• ${manifest} does not say \`"type": "module"\`: a top-level \`await\` does not work below it. \`npm pkg set type=module\` adds it.`,
    ),
  );
}

/** The package.json that decides how Node reads the file. */
function manifestOf(file: string): string | undefined {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    if (existsSync(path)) return path;
    if (folder === dirname(folder)) return undefined;
  }
}

function isModule(manifest: string): boolean {
  try {
    const read: unknown = JSON.parse(readFileSync(manifest, "utf8"));
    return typeof read === "object" && read !== null && "type" in read && read.type === "module";
  } catch {
    return true; // Node says itself what is wrong with it
  }
}
