// A server from PATH, else from Debian's packages, unpacked into a folder of the benchmark's own: no root is needed.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const exec = promisify(execFile);
const cache = fileURLToPath(new URL("../../.cache/", import.meta.url));

export interface DebianProgram {
  /** A name that PATH knows, or a path. */
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Rejects, with apt-get's own message, where neither PATH nor Debian's packages have it. */
export async function debianProgram(name: string, packages: readonly string[]): Promise<DebianProgram> {
  const installed = await exec(name, ["--version"]).catch(() => undefined);
  if (installed !== undefined) return { command: name, env: process.env };
  const root = join(cache, name);
  if (!existsSync(join(root, "complete"))) await unpack(root, packages);
  const [command] = find(root, name);
  if (command === undefined) throw new Error(`Debian's packages have no ${name}`);
  const libraries = readdirSync(join(root, "usr", "lib")).map((folder) => join(root, "usr", "lib", folder));
  return { command, env: { ...process.env, LD_LIBRARY_PATH: libraries.join(":") } };
}

async function unpack(root: string, packages: readonly string[]): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "fresh-"));
  try {
    await exec("apt-get", ["--quiet=2", "download", ...packages], { cwd: fresh, timeout: 180_000 });
    for (const file of readdirSync(fresh).filter((each) => each.endsWith(".deb"))) {
      await exec("dpkg-deb", ["-x", file, "."], { cwd: fresh });
      rmSync(join(fresh, file));
    }
    writeFileSync(join(fresh, "complete"), "");
    rmSync(root, { recursive: true, force: true });
    renameSync(fresh, root);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Programs of that name in the tree. */
function find(root: string, name: string): string[] {
  return readdirSync(root, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.name === name && (entry.isFile() || entry.isSymbolicLink()))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => path.includes("/bin/"));
}
