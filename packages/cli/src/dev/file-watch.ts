import { type FSWatcher, readdirSync, watch } from "node:fs";
import { join } from "node:path";

const settleMs = 120;
const code = /\.[cm]?[jt]sx?$/;
const ignored = new Set(["node_modules", "dist", "build", "coverage"]);

/**
 * Watches the source files below a folder and calls back once things have settled. One watcher per folder, made
 * by ourselves: what Node calls recursive walks into node_modules too.
 */
export class FileWatch {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #onChange: (file: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(root: string, onChange: (file: string) => void) {
    this.#onChange = onChange;
    this.#add(root);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #add(folder: string): void {
    if (this.#closed || this.#watchers.has(folder)) return;
    try {
      const watcher = watch(folder, (_, name) => this.#seen(folder, name));
      watcher.on("error", () => this.#drop(folder));
      this.#watchers.set(folder, watcher);
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (entry.isDirectory() && isWatched(entry.name)) this.#add(join(folder, entry.name));
      }
    } catch {
      this.#drop(folder); // it has just been removed
    }
  }

  #drop(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #seen(folder: string, name: string | null): void {
    if (name === null) return;
    const path = join(folder, name);
    if (code.test(name)) this.#changed(path);
    else if (isWatched(name) && isFolder(folder, name)) this.#add(path);
  }

  #changed(path: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onChange(path), settleMs);
  }
}

function isWatched(name: string): boolean {
  return !name.startsWith(".") && !ignored.has(name);
}

function isFolder(folder: string, name: string): boolean {
  try {
    return readdirSync(folder, { withFileTypes: true }).some(
      (entry) => entry.name === name && entry.isDirectory(),
    );
  } catch {
    return false;
  }
}
