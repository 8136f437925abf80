import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fchmodSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import process from "node:process";

/**
 * Writes a file that only its owner can read, whatever the umask: the content is complete and private before the
 * name exists. With `exclusive` an existing file is left alone and false is returned.
 */
export function writePrivateFile(path: string, text: string, options: { exclusive?: boolean } = {}): boolean {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      fchmodSync(file, 0o600);
      writeSync(file, text);
    } finally {
      closeSync(file);
    }
    if (options.exclusive === true) linkSync(draft, path);
    else renameSync(draft, path);
    return true;
  } catch (cause) {
    if (options.exclusive === true && codeOf(cause) === "EEXIST") return false;
    throw cause;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** True when others than the owner may read the file. Windows has no such bits. */
export function othersCanRead(path: string): boolean {
  return process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0;
}

/** Makes a folder of ours private, also one that exists already. */
export function makePrivate(folder: string): void {
  if (process.platform !== "win32") chmodSync(folder, 0o700);
}

/** The system's code of an error: `ENOENT` and so on. */
export function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined;
}
