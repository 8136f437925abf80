import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const KEYRINGS = [
  "/usr/share/keyrings/debian-archive-keyring.gpg",
  "/usr/share/keyrings/debian-archive-keyring.pgp",
];
const STEP_TIMEOUT_MS = 90_000;

export interface DebianOptions {
  readonly onProgress: (message: string) => void;
  /** The system's apt configuration folder. Default `/etc/apt`. */
  readonly etcApt?: string;
}

/**
 * Unpacks nats-server from Debian's unstable suite and hands the binary (in a temporary folder, gone afterwards)
 * to `use`. Nothing is installed, the system's package lists are neither read nor changed, no root is needed: apt
 * works on a private list of one source, whose address comes from the system's own sources, and checks the
 * archive's signature with the keyring that the system already trusts.
 */
export async function withDebianPackage<T>(
  options: DebianOptions,
  use: (binary: string) => Promise<T>,
): Promise<T> {
  const keyring = await firstReadable(KEYRINGS);
  if (keyring === undefined) throw new Error("not a Debian system (no Debian archive keyring)");
  const uris = await debianUris(options.etcApt ?? "/etc/apt");
  if (uris.length === 0) throw new Error("the system's apt sources name no Debian archive");
  // Not in the cache: its path may hold anything, and apt does not take every character.
  const dir = await mkdtemp(join(tmpdir(), "trellis-apt-"));
  try {
    options.onProgress("fetching nats-server (package of Debian's unstable suite, unpacked only)");
    let failure: unknown;
    for (const uri of uris.slice(0, 3)) {
      try {
        return await use(await unpackFrom({ uri, keyring, dir }));
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

interface Source {
  readonly uri: string;
  readonly keyring: string;
  readonly dir: string;
}

async function unpackFrom(source: Source): Promise<string> {
  const { dir } = source;
  const options = await prepareApt(source);
  await run(dir, "apt-get", [...options, "--quiet=2", "update"]);
  await run(dir, "apt-get", [...options, "--quiet=2", "download", "nats-server"]);
  const packages = (await readdir(dir)).filter((name) => name.endsWith(".deb"));
  const [file] = packages;
  if (file === undefined) throw new Error("apt-get downloaded nothing");
  await run(dir, "dpkg-deb", ["-x", file, "root"]);
  const places = ["sbin", "bin"].map((folder) => join(dir, "root", "usr", folder, "nats-server"));
  const binary = await firstReadable(places);
  if (binary === undefined) throw new Error("the package holds no nats-server");
  return binary;
}

/** Writes the private source list; the options keep apt away from everything of the system but its network setup. */
async function prepareApt({ uri, keyring, dir }: Source): Promise<string[]> {
  for (const folder of ["lists/partial", "archives/partial"])
    await mkdir(join(dir, folder), { recursive: true });
  await writeFile(join(dir, "sources.list"), `deb [signed-by=${keyring}] ${uri} sid main\n`);
  // Hooks of the system (cleaning its cache, telling its desktop) must not run; only a file can clear a list.
  const hooks = ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"].map(
    (hook) => `#clear APT::Update::${hook};\n`,
  );
  await writeFile(join(dir, "apt.conf"), hooks.join(""));
  const settings: Readonly<Record<string, string>> = {
    "Dir::Etc::sourcelist": join(dir, "sources.list"),
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::preferences": "-",
    "Dir::Etc::preferencesparts": "-",
    "Dir::State": dir,
    "Dir::State::lists": join(dir, "lists"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": dir,
    "Dir::Cache::archives": join(dir, "archives"),
    "Debug::NoLocking": "1",
    "APT::Sandbox::User": "",
    "APT::Get::List-Cleanup": "0",
    "Acquire::Languages": "none",
    "Acquire::PDiffs": "0",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "0",
    "Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled": "0",
    "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "0",
    "Acquire::Retries": "1",
    "Acquire::http::Timeout": "10",
    "Acquire::https::Timeout": "10",
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  return ["-c", join(dir, "apt.conf"), ...flags];
}

/** Addresses of Debian's main archive in the system's sources, in both of apt's formats. Security archives hold no suites. */
export async function debianUris(etcApt: string): Promise<string[]> {
  const parts = join(etcApt, "sources.list.d");
  const names = (await readdir(parts).catch((): string[] => [])).sort();
  const uris: string[] = [];
  for (const name of names) {
    if (name.endsWith(".sources")) uris.push(...urisOfStanzas(await readOptional(join(parts, name))));
    if (name.endsWith(".list")) uris.push(...urisOfLines(await readOptional(join(parts, name))));
  }
  uris.push(...urisOfLines(await readOptional(join(etcApt, "sources.list"))));
  const usable = uris.filter((uri) => /^(https?|file|mirror\+https?):/.test(uri) && !/security/.test(uri));
  return [...new Set(usable)];
}

function urisOfStanzas(text: string): string[] {
  const uris: string[] = [];
  for (const stanza of text.split(/\n\s*\n/)) {
    const fields = new Map<string, string>();
    for (const line of stanza.replace(/\n[ \t]+/g, " ").split("\n")) {
      const match = /^([A-Za-z-]+):\s*(.*)$/.exec(line);
      if (match !== null) fields.set(String(match[1]).toLowerCase(), String(match[2]).trim());
    }
    const words = (name: string) => (fields.get(name) ?? "").split(/\s+/).filter((word) => word !== "");
    const signedBy = fields.get("signed-by") ?? "";
    if (fields.get("enabled") === "no" || !words("types").includes("deb")) continue;
    if (!words("components").includes("main") || (signedBy !== "" && !signedBy.includes("debian-archive")))
      continue;
    uris.push(...words("uris"));
  }
  return uris;
}

function urisOfLines(text: string): string[] {
  const uris: string[] = [];
  for (const line of text.split("\n")) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+\S+\s+(.*)$/.exec(line);
    if (match === null || !/\bmain\b/.test(String(match[3]))) continue;
    const options = match[1] ?? "";
    if (options.includes("signed-by=") && !options.includes("debian-archive")) continue;
    uris.push(String(match[2]));
  }
  return uris;
}

async function readOptional(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}

async function firstReadable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const readable = await access(path).then(
      () => true,
      () => false,
    );
    if (readable) return path;
  }
  return undefined;
}

function run(cwd: string, command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
    execFile(
      command,
      [...args],
      { cwd, env, timeout: STEP_TIMEOUT_MS, maxBuffer: 4 * 1024 * 1024 },
      (error, _out, stderr) => {
        if (error === null) return resolve();
        const problem =
          stderr.split("\n").find((line) => line.startsWith("E:")) ?? error.message.split("\n")[0];
        // No address in it: the source is the system's business.
        reject(new Error(`${command}: ${String(problem).replace(/\S+:\/\/\S+/g, "<archive>")}`));
      },
    );
  });
}
