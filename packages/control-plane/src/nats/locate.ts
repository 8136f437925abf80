import { access, constants } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { cacheDirs, cachedBinaries, installBinary, openCache, withCacheLock } from "./cache.ts";
import { withDebianPackage } from "./debian.ts";
import { type NatsAttempt, NatsError } from "./nats-error.ts";
import { withRelease } from "./release.ts";
import {
  ADVISED_VERSION,
  askVersion,
  compareVersions,
  formatVersion,
  MINIMUM_VERSION,
  type NatsVersion,
  PINNED_VERSION,
} from "./version.ts";

export interface NatsBinary {
  readonly path: string;
  readonly version: NatsVersion;
  readonly source: "environment" | "path" | "cache" | "release" | "debian";
}

export interface FindNatsOptions {
  /** Hears what takes time ("fetching nats-server 2.15.1 ..."), and advice. */
  readonly onProgress?: (message: string) => void;
  /** Default `process.env`: `TRELLIS_NATS_SERVER`, `PATH`, `XDG_CACHE_HOME`, `HOME`, `TRELLIS_NATS_RELEASES`. */
  readonly env?: NodeJS.ProcessEnv;
  /** False: only look, fetch nothing. Default true. */
  readonly fetch?: boolean;
  /** The system's apt configuration folder. Default `/etc/apt`. */
  readonly etcApt?: string;
}

type Found = { readonly binary: NatsBinary } | { readonly reason: string };

/**
 * Finds a nats-server that is new enough, in this order: `TRELLIS_NATS_SERVER`, `PATH`, the cache, the project's
 * release archive, Debian's package. The two fetches put their result into the cache.
 *
 * The release goes before the Debian package: it is the pinned version, it is what most machines can reach, and
 * where it cannot be reached that shows within 4 s at the worst (at once where there is no name service), while apt
 * first loads an index of tens of megabytes.
 *
 * Throws `NatsError` `trellis.nats.not_found` that lists what was tried, or `trellis.nats.unsupported_version` when
 * `TRELLIS_NATS_SERVER` names a binary that cannot be used: what was asked for is never silently replaced.
 */
export async function findNatsServer(options: FindNatsOptions = {}): Promise<NatsBinary> {
  const { env = process.env, onProgress = () => undefined } = options;
  const named = env["TRELLIS_NATS_SERVER"];
  if (named !== undefined && named !== "") return advise(await fromEnvironment(named), onProgress);
  const attempts: NatsAttempt[] = [{ source: "TRELLIS_NATS_SERVER", outcome: "is not set" }];
  const found = (await fromPath(env, attempts)) ?? (await fromCache(env, attempts));
  if (found !== undefined) return advise(found, onProgress);
  if (options.fetch === false)
    throw notFound([...attempts, { source: "fetching", outcome: "is switched off" }]);
  return advise(await fetchToCache({ ...options, env, onProgress }, attempts), onProgress);
}

function advise(binary: NatsBinary, onProgress: (message: string) => void): NatsBinary {
  if (compareVersions(binary.version, ADVISED_VERSION) < 0) {
    const [has, wants] = [formatVersion(binary.version), formatVersion(ADVISED_VERSION)];
    onProgress(`nats-server ${has} has known security holes: ${wants} or newer is advised`);
  }
  return binary;
}

async function check(path: string, source: NatsBinary["source"]): Promise<Found> {
  const answer = await askVersion(path);
  if ("reason" in answer) return { reason: `${path} ${answer.reason}` };
  const { version } = answer;
  if (compareVersions(version, MINIMUM_VERSION) >= 0) return { binary: { path, version, source } };
  return { reason: `${path} is ${formatVersion(version)}, older than ${formatVersion(MINIMUM_VERSION)}` };
}

async function fromEnvironment(path: string): Promise<NatsBinary> {
  const found = await check(path, "environment");
  if ("binary" in found) return found.binary;
  throw new NatsError({
    code: "trellis.nats.unsupported_version",
    message: `TRELLIS_NATS_SERVER: ${found.reason}`,
    hint: `Point TRELLIS_NATS_SERVER at a nats-server ${formatVersion(MINIMUM_VERSION)} or newer, or unset it.`,
    attempts: [{ source: "TRELLIS_NATS_SERVER", outcome: found.reason }],
  });
}

async function fromPath(env: NodeJS.ProcessEnv, attempts: NatsAttempt[]): Promise<NatsBinary | undefined> {
  const reasons: string[] = [];
  for (const dir of (env["PATH"] ?? "").split(delimiter)) {
    // A relative entry would make the answer depend on the working directory.
    if (!isAbsolute(dir)) continue;
    const path = join(dir, "nats-server");
    if (!(await isExecutable(path))) continue;
    const found = await check(path, "path");
    if ("binary" in found) return found.binary;
    reasons.push(found.reason);
  }
  attempts.push({
    source: "PATH",
    outcome: reasons.length === 0 ? "has no nats-server" : reasons.join("; "),
  });
  return undefined;
}

async function fromCache(env: NodeJS.ProcessEnv, attempts: NatsAttempt[]): Promise<NatsBinary | undefined> {
  const dirs = cacheDirs(env);
  const reasons: string[] = [];
  for (const dir of dirs) {
    for (const path of await cachedBinaries(dir)) {
      if (!(await isExecutable(path))) continue;
      const found = await check(path, "cache");
      if ("binary" in found) return found.binary;
      reasons.push(found.reason);
    }
  }
  const outcome = reasons.length === 0 ? `holds none (${dirs.join(", ")})` : reasons.join("; ");
  attempts.push({ source: "cache", outcome });
  return undefined;
}

type FetchOptions = Required<Pick<FindNatsOptions, "env" | "onProgress">> & FindNatsOptions;

async function fetchToCache(options: FetchOptions, attempts: NatsAttempt[]): Promise<NatsBinary> {
  const cache = await openCache(cacheDirs(options.env));
  if ("reason" in cache) throw notFound([...attempts, { source: "fetching", outcome: cache.reason }]);
  const { dir } = cache;
  return await withCacheLock(dir, async () => {
    // Another process may have fetched it while this one waited.
    const already = await fromCache(options.env, []);
    if (already !== undefined) return already;
    const keep = async (path: string, source: NatsBinary["source"]): Promise<NatsBinary> => {
      const found = await check(path, source);
      if ("reason" in found) throw new Error(found.reason.replace(path, "what was fetched"));
      const { version } = found.binary;
      return { path: await installBinary(dir, version, path), version, source };
    };
    const release = { version: PINNED_VERSION, env: options.env, onProgress: options.onProgress };
    const fetches: readonly [string, () => Promise<NatsBinary>][] = [
      ["release archive", () => withRelease(release, (path) => keep(path, "release"))],
      ["Debian package", () => withDebianPackage(options, (path) => keep(path, "debian"))],
    ];
    for (const [source, fetchIt] of fetches) {
      try {
        return await fetchIt();
      } catch (error) {
        attempts.push({ source, outcome: error instanceof Error ? error.message : String(error) });
      }
    }
    throw notFound(attempts);
  });
}

function notFound(attempts: readonly NatsAttempt[]): NatsError {
  const minimum = formatVersion(MINIMUM_VERSION);
  const tried = attempts.map(({ source, outcome }) => `\n  ${source}: ${outcome}`).join("");
  const hint = [
    `Install nats-server ${minimum} or newer (tested with ${formatVersion(PINNED_VERSION)}) in one of three ways:`,
    "  package manager: `brew install nats-server`, or your distribution's package, if it is new enough",
    "  release archive: unpack it from the nats-server releases, and put the binary on PATH or name it in TRELLIS_NATS_SERVER",
    "  container: run the official `nats` image, and start Trellis with --nats <url> instead of a managed server",
  ].join("\n");
  return new NatsError({
    code: "trellis.nats.not_found",
    message: `no nats-server ${minimum} or newer was found. Tried:${tried}\n${hint}`,
    hint,
    attempts,
  });
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
