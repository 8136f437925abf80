import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cacheDirs } from "./cache.ts";
import { debianUris } from "./debian.ts";
import { findNatsServer } from "./locate.ts";
import { NatsError } from "./nats-error.ts";
import { archiveName } from "./release.ts";
import { PINNED_VERSION, parseVersion } from "./version.ts";

let dir: string;
let env: NodeJS.ProcessEnv;
let etcApt: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "trellis locate "));
  etcApt = join(dir, "apt");
  // Port 9 is one that fetch never connects to.
  env = {
    PATH: join(dir, "bin"),
    HOME: join(dir, "home"),
    XDG_CACHE_HOME: join(dir, "cache"),
    TRELLIS_NATS_RELEASES: "http://127.0.0.1:9/x",
  };
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const script = (version: string) => `#!/bin/sh\necho "nats-server: v${version}"\n`;

async function fake(path: string, version: string): Promise<string> {
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, script(version));
  await chmod(path, 0o755);
  return path;
}

async function failure(options: Parameters<typeof findNatsServer>[0]): Promise<NatsError> {
  const error: unknown = await findNatsServer(options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof NatsError)) throw new Error("it was found");
  return error;
}

describe("findNatsServer", () => {
  test("TRELLIS_NATS_SERVER wins, and is never replaced when it does not fit", async () => {
    await fake(join(dir, "bin", "nats-server"), "2.13.0");
    const path = await fake(join(dir, "mine"), "2.14.2");
    const named = { ...env, TRELLIS_NATS_SERVER: path };
    expect(await findNatsServer({ env: named })).toMatchObject({ path, source: "environment" });
    await fake(path, "2.11.9");
    const error = await failure({ env: named });
    expect(error.code).toBe("trellis.nats.unsupported_version");
    expect(error.message).toContain("2.11.9, older than 2.12.0");
    expect((await failure({ env: { ...env, TRELLIS_NATS_SERVER: join(dir, "none") } })).message).toContain(
      "ENOENT",
    );
  });

  test("PATH, when it is new enough; old ones get advice or are passed over", async () => {
    await fake(join(dir, "old", "nats-server"), "2.10.27");
    const path = await fake(join(dir, "bin", "nats-server"), "2.12.1");
    const notes: string[] = [];
    const found = await findNatsServer({
      env: { ...env, PATH: `${join(dir, "old")}:relative:${env["PATH"]}` },
      onProgress: (note) => notes.push(note),
    });
    expect(found).toMatchObject({ path, source: "path" });
    expect(notes).toEqual([expect.stringContaining("2.12.6 or newer is advised")]);
  });

  test("the cache: the pinned version, else the newest", async () => {
    const cache = join(dir, "cache", "trellis", "nats-server");
    for (const version of ["2.12.9", "2.16.0"]) await fake(join(cache, version, "nats-server"), version);
    expect((await findNatsServer({ env })).path).toContain("2.16.0");
    await fake(join(cache, "2.15.1", "nats-server"), "2.15.1");
    expect(await findNatsServer({ env })).toMatchObject({ version: PINNED_VERSION, source: "cache" });
  });

  test("one error tells what was tried and how to install, with no address in it", async () => {
    await fake(join(dir, "bin", "nats-server"), "2.9.10");
    const error = await failure({ env, etcApt });
    expect(error.code).toBe("trellis.nats.not_found");
    expect(error.attempts.map(({ source }) => source)).toEqual([
      "TRELLIS_NATS_SERVER",
      "PATH",
      "cache",
      "release archive",
      "Debian package",
    ]);
    for (const part of [
      "2.12.0 or newer",
      "2.9.10",
      "cannot be reached",
      "package manager",
      "release archive",
      "container",
    ]) {
      expect(error.message).toContain(part);
    }
    expect(error.message).not.toMatch(/https?:/);
    expect((await failure({ env, fetch: false })).message).toContain("switched off");
  });
});

describe("release archive", () => {
  const name = archiveName(PINNED_VERSION, process.platform, process.arch) ?? "unsupported";
  let site: Server;
  let requests: string[];
  let archive: Buffer;
  let sums: string;

  beforeEach(async () => {
    requests = [];
    archive = gzipSync(tar("nats-server-v2.15.1-linux-amd64/nats-server", Buffer.from(script("2.15.1"))));
    sums = `${"0".repeat(64)}  other.zip\n${createHash("sha256").update(archive).digest("hex")}  ${name}\n`;
    site = createServer((request, response) => {
      requests.push(request.url ?? "");
      if (request.url === "/v2.15.1/SHA256SUMS") response.end(sums);
      else if (request.url === `/v2.15.1/${name}`) response.end(archive);
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    const address = site.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    env["TRELLIS_NATS_RELEASES"] = `http://127.0.0.1:${address.port}/`;
  });
  afterEach(() => {
    site.closeAllConnections();
    site.close();
  });

  test("is fetched once by many that look at the same time, and lands in the cache whole", async () => {
    const found = await Promise.all(Array.from({ length: 4 }, () => findNatsServer({ env, etcApt })));
    const cache = join(dir, "cache", "trellis", "nats-server");
    for (const { path } of found) expect(path).toBe(join(cache, "2.15.1", "nats-server"));
    expect(found.filter(({ source }) => source === "release")).toHaveLength(1);
    expect(requests).toHaveLength(2);
    expect(await readdir(cache)).toEqual(["2.15.1"]);
    expect((await stat(join(cache, "2.15.1"))).mode & 0o777).toBe(0o700);
  });

  test("a wrong check sum, a missing one, a broken archive: refused, nothing stays", async () => {
    sums = `${"0".repeat(64)}  ${name}\n`;
    expect((await failure({ env, etcApt })).message).toContain("as listed");
    sums = "";
    expect((await failure({ env, etcApt })).message).toContain("lists no SHA-256");
    archive = gzipSync(tar("x/readme", Buffer.from("")));
    sums = `${createHash("sha256").update(archive).digest("hex")} *${name}\n`;
    expect((await failure({ env, etcApt })).message).toContain("holds no nats-server");
    expect(await readdir(join(dir, "cache", "trellis", "nats-server"))).toEqual([]);
  });

  test("plain http is for loopback only", async () => {
    env["TRELLIS_NATS_RELEASES"] = "http://mirror.example/nats";
    expect((await failure({ env, etcApt })).message).toContain("must be https");
  });

  test("works with a cache folder that cannot be made, and in a home with a quote in its name", async () => {
    await writeFile(join(dir, "file"), "");
    const odd = { ...env, XDG_CACHE_HOME: join(dir, "file"), HOME: join(dir, 'q"uote home') };
    expect((await findNatsServer({ env: odd, etcApt })).path).toContain('q"uote home/.cache/trellis');
  });

  test("a stale lock of a dead process is broken", async () => {
    const cache = join(dir, "cache", "trellis", "nats-server");
    await mkdir(cache, { recursive: true });
    await writeFile(join(cache, ".lock"), "999999999");
    expect((await findNatsServer({ env, etcApt })).source).toBe("release");
  });
});

test("with HOME unset the cache lies in the home of the password file", () => {
  const [first] = cacheDirs({});
  expect(first).toBe(join(homedir(), ".cache", "trellis", "nats-server"));
  expect(cacheDirs({ XDG_CACHE_HOME: "relative" })[0]).toBe(first);
});

test("debianUris reads both formats, and neither foreign nor switched-off sources", async () => {
  const parts = join(etcApt, "sources.list.d");
  await mkdir(parts, { recursive: true });
  const stanza = (uri: string, more: string) =>
    `Types: deb\nURIs: ${uri}\nSuites: stable\nComponents: main\n${more}\n`;
  await writeFile(
    join(parts, "a.sources"),
    [
      stanza("http://one.example/debian", "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"),
      stanza("http://one.example/debian-security", ""),
      stanza("http://foreign.example/deb", "Signed-By: /etc/apt/keyrings/foreign.gpg\n"),
      stanza("http://off.example/debian", "Enabled: no\n"),
    ].join("\n"),
  );
  await writeFile(
    join(parts, "b.list"),
    "deb [arch=amd64 signed-by=/k/foreign.gpg] http://f.example/x stable main\n",
  );
  await writeFile(
    join(etcApt, "sources.list"),
    "# deb http://comment.example/debian stable main\ndeb [arch=amd64] http://two.example/debian stable main contrib\ndeb-src http://src.example/debian stable main\n",
  );
  expect(await debianUris(etcApt)).toEqual(["http://one.example/debian", "http://two.example/debian"]);
  expect(await debianUris(join(dir, "nothing"))).toEqual([]);
});

test("parseVersion", () => {
  expect(parseVersion("nats-server: v2.15.1")).toEqual(PINNED_VERSION);
  expect(parseVersion("2.12.0-RC.1")).toEqual({ major: 2, minor: 12, patch: 0 });
  expect(parseVersion("nats-server: development")).toBeUndefined();
});

function tar(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write(content.length.toString(8).padStart(11, "0"), 124);
  header.write("0", 156);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  content.copy(body);
  return Buffer.concat([header, body, Buffer.alloc(1024)]);
}
