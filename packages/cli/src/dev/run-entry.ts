import { relative } from "node:path";
import type { Terminal } from "../output/terminal.ts";
import { codeOfExit, type EntryOptions, EntryProcess } from "./entry-process.ts";
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
  options.signal.removeEventListener("abort", stop);
  // Ended because we asked: that is success, however it ended.
  return options.signal.aborted ? 0 : codeOfExit(exit);
}
