import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { extractFile } from "./tar.ts";
import { formatVersion, type NatsVersion } from "./version.ts";

/** Where the project publishes its releases; `TRELLIS_NATS_RELEASES` names a mirror with the same layout. */
const RELEASES = "https://github.com/nats-io/nats-server/releases/download";

/** The first answer must come quickly: where the site cannot be reached, another source is waiting. */
const CONNECT_TIMEOUT_MS = 4_000;
const DOWNLOAD_TIMEOUT_MS = 120_000;
const LONGEST_ARCHIVE = 100 * 1024 * 1024;

const SYSTEMS: Readonly<Record<string, string>> = { linux: "linux", darwin: "darwin" };
const PROCESSORS: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** The archive's name for this machine, or undefined where the project publishes none that Trellis knows. */
export function archiveName(version: NatsVersion, platform: string, arch: string): string | undefined {
  const system = SYSTEMS[platform];
  const processor = PROCESSORS[arch];
  if (system === undefined || processor === undefined) return undefined;
  return `nats-server-v${formatVersion(version)}-${system}-${processor}.tar.gz`;
}

export interface ReleaseOptions {
  readonly version: NatsVersion;
  readonly env: NodeJS.ProcessEnv;
  readonly onProgress: (message: string) => void;
}

/**
 * Fetches the project's release for this platform, checks it against the release's list of SHA-256 sums, and hands
 * the binary (in a temporary folder, gone afterwards) to `use`. Throws with a short reason.
 */
export async function withRelease<T>(
  options: ReleaseOptions,
  use: (binary: string) => Promise<T>,
): Promise<T> {
  const name = archiveName(options.version, process.platform, process.arch);
  if (name === undefined) throw new Error(`no release for ${process.platform} on ${process.arch}`);
  const base = `${releaseBase(options.env)}/v${formatVersion(options.version)}`;
  const sums = (await fetchBytes(`${base}/SHA256SUMS`)).toString("utf8");
  const expected = findSum(sums, name);
  if (expected === undefined) throw new Error(`the release lists no SHA-256 of ${name}`);
  options.onProgress(`fetching nats-server ${formatVersion(options.version)} (release archive)`);
  const archive = await fetchBytes(`${base}/${name}`);
  const actual = createHash("sha256").update(archive).digest("hex");
  if (actual !== expected) throw new Error(`the SHA-256 of ${name} is ${actual}, not ${expected} as listed`);
  const binary = extractFile(gunzipSync(archive), "nats-server");
  if (binary === undefined) throw new Error(`${name} holds no nats-server`);
  const dir = await mkdtemp(join(tmpdir(), "trellis-nats-"));
  try {
    const path = join(dir, "nats-server");
    await writeFile(path, binary, { mode: 0o755 });
    return await use(path);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function releaseBase(env: NodeJS.ProcessEnv): string {
  const base = new URL(env["TRELLIS_NATS_RELEASES"] || RELEASES);
  const loopback = ["127.0.0.1", "[::1]", "localhost"].includes(base.hostname);
  if (base.protocol !== "https:" && !loopback) throw new Error("TRELLIS_NATS_RELEASES must be https");
  return base.href.replace(/\/+$/, "");
}

/** A line of the list: 64 hex digits, white space, perhaps `*`, the file's name. */
function findSum(list: string, name: string): string | undefined {
  for (const line of list.split("\n")) {
    const match = /^([0-9a-f]{64})\s+\*?(\S+)\s*$/i.exec(line);
    if (match?.[2] === name) return match[1]?.toLowerCase();
  }
  return undefined;
}

async function fetchBytes(url: string): Promise<Buffer> {
  const abort = new AbortController();
  const connect = setTimeout(() => abort.abort(new Error("no answer within 4 s")), CONNECT_TIMEOUT_MS);
  const whole = setTimeout(
    () => abort.abort(new Error("the download took over 2 minutes")),
    DOWNLOAD_TIMEOUT_MS,
  );
  try {
    const response = await fetch(url, { signal: abort.signal, redirect: "follow" });
    clearTimeout(connect);
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw new Error(`the release site answers with status ${response.status}`);
    }
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > LONGEST_ARCHIVE) throw new Error("the archive is larger than any release");
    }
    return Buffer.concat(chunks);
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error });
  } finally {
    clearTimeout(connect);
    clearTimeout(whole);
  }
}

/** `fetch` hides what went wrong in the cause of a "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return `the release site cannot be reached (${"code" in cause ? String(cause.code) : cause.message})`;
}
