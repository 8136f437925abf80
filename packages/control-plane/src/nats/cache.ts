import { randomBytes } from "node:crypto";
import {
  access,
  chmod,
  constants,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { compareVersions, formatVersion, type NatsVersion, PINNED_VERSION, parseVersion } from "./version.ts";

/** A lock older than this belongs to a process that hangs: every fetch has shorter time-outs. */
const STALE_LOCK_MS = 5 * 60_000;
const LOCK_POLL_MS = 100;

/**
 * Folders that may hold one folder per nats-server version, best first: under `$XDG_CACHE_HOME`, under `~/.cache`
 * (the password file's home when `HOME` is unset), and a private one among the temporary files.
 */
export function cacheDirs(env: NodeJS.ProcessEnv): string[] {
  const dirs: string[] = [];
  const xdg = env["XDG_CACHE_HOME"];
  if (xdg !== undefined && isAbsolute(xdg)) dirs.push(join(xdg, "trellis", "nats-server"));
  const home = env["HOME"] || passwordFileHome();
  if (home !== undefined && isAbsolute(home)) dirs.push(join(home, ".cache", "trellis", "nats-server"));
  dirs.push(temporaryCache());
  return dirs;
}

function passwordFileHome(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

function temporaryCache(): string {
  return join(tmpdir(), `trellis-nats-server-${process.getuid?.() ?? "user"}`);
}

/** The binaries in one cache folder, the pinned version first, then the newest. */
export async function cachedBinaries(dir: string): Promise<string[]> {
  if (!(await isOurs(dir))) return [];
  const versions: { name: string; version: NatsVersion }[] = [];
  for (const name of await readdir(dir).catch(() => [])) {
    const version = parseVersion(name);
    if (version !== undefined && formatVersion(version) === name) versions.push({ name, version });
  }
  const rank = (version: NatsVersion) => (compareVersions(version, PINNED_VERSION) === 0 ? 1 : 0);
  versions.sort((a, b) => rank(b.version) - rank(a.version) || compareVersions(b.version, a.version));
  return versions.map(({ name }) => join(dir, name, "nats-server"));
}

/** The first cache folder that can be written, made when it is not there. */
export async function openCache(dirs: readonly string[]): Promise<{ dir: string } | { reason: string }> {
  const reasons: string[] = [];
  for (const dir of dirs) {
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await access(dir, constants.W_OK);
      if (await isOurs(dir)) return { dir };
      reasons.push(`${dir} belongs to somebody else`);
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error));
    }
  }
  return { reason: `no cache folder can be written: ${reasons.join("; ")}` };
}

/** What lies in the folder gets executed, and names below a shared /tmp can be taken by anybody first. */
async function isOurs(dir: string): Promise<boolean> {
  const uid = process.getuid?.();
  const info = await lstat(dir).catch(() => undefined);
  if (info === undefined) return false;
  if (dir !== temporaryCache() || uid === undefined) return true;
  return info.isDirectory() && info.uid === uid && (info.mode & 0o022) === 0;
}

/**
 * Puts a binary into the cache by one rename, so that no other process ever sees half of it; when another was
 * faster, its copy stays. Gives the path in the cache.
 */
export async function installBinary(cache: string, version: NatsVersion, binary: string): Promise<string> {
  const target = join(cache, formatVersion(version));
  const staging = join(cache, `.incoming-${process.pid}-${randomBytes(6).toString("hex")}`);
  await mkdir(staging, { mode: 0o700 });
  try {
    await copyFile(binary, join(staging, "nats-server"));
    await chmod(join(staging, "nats-server"), 0o755);
    await rename(staging, target).catch((error: unknown) => {
      if (!isCode(error, "ENOTEMPTY", "EEXIST")) throw error;
    });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return join(target, "nats-server");
}

/**
 * Runs `work` while no other process runs its own on this cache. It only saves downloads: installing is atomic, so
 * two that hold it at once (a stale lock broken by both) do no harm.
 */
export async function withCacheLock<T>(cache: string, work: () => Promise<T>): Promise<T> {
  const lock = join(cache, ".lock");
  for (;;) {
    try {
      await writeFile(lock, String(process.pid), { flag: "wx", mode: 0o600 });
      break;
    } catch (error) {
      if (!isCode(error, "EEXIST")) throw error;
      if (await isStale(lock)) await rm(lock, { force: true });
      else await delay(LOCK_POLL_MS);
    }
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

async function isStale(lock: string): Promise<boolean> {
  try {
    const [info, owner] = await Promise.all([stat(lock), readFile(lock, "utf8")]);
    if (Date.now() - info.mtimeMs > STALE_LOCK_MS) return true;
    // Empty while its owner is between creating and writing it.
    return owner !== "" && !isAlive(Number(owner));
  } catch {
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isCode(error, "ESRCH");
  }
}

function isCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.some((code) => error.code === code);
}
