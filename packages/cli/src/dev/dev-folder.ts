import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CliFailure } from "../failure.ts";
import { devFilePath, devFolderName, readDevFile } from "../platform/dev-file.ts";
import { codeOf, makePrivate, writePrivateFile } from "../platform/private-file.ts";
import { isRunning, ownMark, type ProcessMark } from "../platform/process-mark.ts";

/**
 * The `.trellis` folder of a project: everything that `trellis dev` keeps. One process at a time holds it; what
 * holds it is a process, not a file, so that a crash leaves nothing to clean up.
 */
export class DevFolder {
  readonly project: string;
  readonly path: string;
  /** Keys, database and the broker's data. */
  readonly data: string;
  readonly #lock: string;

  constructor(project: string) {
    this.project = project;
    this.path = join(project, devFolderName);
    this.data = join(this.path, "data");
    this.#lock = join(this.path, "dev.lock");
  }

  /** Takes the folder, or says who has it. Returns how to give it back. */
  claim(): () => void {
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    makePrivate(this.path);
    writeFileSync(join(this.path, ".gitignore"), "*\n");
    const own = ownMark();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      if (writePrivateFile(this.#lock, JSON.stringify(own), { exclusive: true }))
        return () => this.#release(own);
      const held = readFileSyncOrNone(this.#lock);
      const holder = readMark(held);
      if (holder !== undefined && isRunning(holder)) throw this.#taken(holder);
      if (held !== undefined) this.#clear(held);
    }
    throw new CliFailure(`${this.#lock} cannot be taken.`, { hint: "Remove it and try again." });
  }

  /** Forgets everything that was kept. */
  clear(): void {
    rmSync(this.data, { recursive: true, force: true });
  }

  /** The token of this folder, the same at every start: what was installed by it stays its own. */
  token(): string {
    mkdirSync(this.data, { recursive: true, mode: 0o700 });
    const path = join(this.data, "dev-token");
    const kept = readFileSyncOrNone(path)?.trim();
    if (kept !== undefined && /^[A-Za-z0-9_-]{43}$/.test(kept)) return kept;
    const made = randomBytes(32).toString("base64url");
    writePrivateFile(path, made);
    return made;
  }

  #release(own: ProcessMark): void {
    const holder = readMark(readFileSyncOrNone(this.#lock));
    if (holder?.pid === own.pid && holder.started === own.started) rmSync(this.#lock, { force: true });
  }

  /** Removes a lock whose holder is gone; one that somebody else has just put in its place is put back. */
  #clear(stale: string): void {
    const aside = `${this.#lock}.${randomBytes(6).toString("hex")}`;
    try {
      renameSync(this.#lock, aside);
      if (readFileSyncOrNone(aside) !== stale) linkSync(aside, this.#lock);
    } catch (cause) {
      const code = codeOf(cause);
      if (code !== "ENOENT" && code !== "EEXIST") throw cause;
    } finally {
      rmSync(aside, { force: true });
    }
  }

  #taken({ pid }: ProcessMark): CliFailure {
    const found = readDevFile(devFilePath(this.project));
    const where = found.kind === "ok" && found.running ? ` at ${found.content.url}` : "";
    return new CliFailure(`trellis dev runs in this folder already${where} (process ${pid}).`, {
      hint: `Use it from here (\`trellis services\`), or stop it: Ctrl-C there, or kill ${pid}.`,
    });
  }
}

function readMark(text: string | undefined): ProcessMark | undefined {
  try {
    const value = JSON.parse(text ?? "") as Partial<ProcessMark> | null;
    const { pid, started } = value ?? {};
    return typeof pid === "number" && typeof started === "string" ? { pid, started } : undefined;
  } catch {
    return undefined;
  }
}

function readFileSyncOrNone(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
