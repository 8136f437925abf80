import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, writePrivateFile } from "./private-file.ts";
import { isRunning } from "./process-mark.ts";

/** What a running `trellis dev` leaves for others: where it is and the token that opens it. Mode 0600. */
export interface DevFile {
  readonly version: 1;
  readonly url: string;
  readonly token: string;
  readonly root: string;
  readonly pid: number;
  /** Tells the process from a later one with the same id. */
  readonly started: string;
}

export const devFolderName = ".trellis";

export function devFilePath(folder: string): string {
  return join(folder, devFolderName, "dev.json");
}

export function writeDevFile(folder: string, content: DevFile): void {
  writePrivateFile(devFilePath(folder), `${JSON.stringify(content, undefined, 2)}\n`);
}

/** Removes the file, unless another process has written its own meanwhile. */
export function removeDevFile(folder: string, pid: number): void {
  const found = readDevFile(devFilePath(folder));
  if (found.kind === "ok" && found.content.pid === pid) rmSync(devFilePath(folder), { force: true });
}

export type DevFileFound =
  | { readonly kind: "ok"; readonly content: DevFile; readonly running: boolean }
  | { readonly kind: "missing" }
  | { readonly kind: "damaged"; readonly problem: string };

/** Reads a dev file, and looks whether the process that wrote it still runs. */
export function readDevFile(path: string): DevFileFound {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ENOTDIR") return { kind: "missing" };
    return { kind: "damaged", problem: `cannot be read (${code ?? "unknown error"})` };
  }
  const content = parse(text);
  if (content === undefined) return { kind: "damaged", problem: "is not what `trellis dev` writes" };
  return { kind: "ok", content, running: isRunning(content) };
}

/** The nearest dev file of this folder and its parents, as the runtime looks for it too. */
export function findDevFile(start: string): { path: string; found: DevFileFound } | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const path = devFilePath(folder);
    const found = readDevFile(path);
    if (found.kind !== "missing") return { path, found };
    if (dirname(folder) === folder) return undefined;
  }
}

function parse(text: string): DevFile | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { url, token, root, pid, started } = value as Record<string, unknown>;
  const texts = [url, token, root, started];
  if (!texts.every((each) => typeof each === "string") || !Number.isSafeInteger(pid)) return undefined;
  return value as DevFile;
}
