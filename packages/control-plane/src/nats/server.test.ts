import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { eventually, type LeakWatch, watchLeaks } from "@trellis/testing";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { quote } from "./conf-text.ts";
import { renderExternalConfig } from "./config.ts";
import { findNatsServer } from "./locate.ts";
import { newPlatformSeeds, publicKeysOf } from "./platform-keys.ts";
import { ManagedNats } from "./server.ts";
import { askVersion } from "./version.ts";

let binary: string;
let base: string;
let watch: LeakWatch;

beforeAll(async () => {
  binary = (await findNatsServer()).path;
});
beforeEach(async () => {
  watch = await watchLeaks();
  base = await mkdtemp(join(tmpdir(), "trellis-server-"));
});
afterEach(async () => {
  await rm(base, { recursive: true, force: true });
  await watch.expectNoLeaks();
});

/** A zombie is dead: it waits for a parent that may be slow to ask. */
function alive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

const parentOf = async (pid: number) =>
  Number(/^PPid:\s*(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]);

describe("ManagedNats", () => {
  test.each([
    "a b",
    'q"uote',
    "back\\slash",
    "ünï 日本",
    "$HOME #x {y}",
    "it's",
    `${"long".repeat(50)}`,
    "new\nline",
  ])("runs in a folder called %j", async (name) => {
    await using nats = await ManagedNats.start({ binary, dir: join(base, name) });
    expect(await readdir(join(base, name))).toContain("jetstream");
    expect(alive(nats.pid)).toBe(true);
  });

  test("modes are private whatever the umask is", async () => {
    const dir = join(base, "private");
    await using nats = await ManagedNats.start({
      binary,
      dir,
      config: { keys: publicKeysOf(newPlatformSeeds()) },
    });
    expect((await stat(nats.dir)).mode & 0o777).toBe(0o700);
    expect((await stat(join(nats.dir, "nats.conf"))).mode & 0o777).toBe(0o600);
  });

  test("an end that nobody asked for closes it; restart is then refused", async () => {
    const nats = await ManagedNats.start({ binary, dir: base });
    process.kill(nats.pid ?? 0, "SIGKILL");
    expect(await nats.closed).toEqual({ reason: "exited", code: 137 });
    expect(nats.pid).toBeUndefined();
    await expect(nats.restart()).rejects.toMatchObject({ code: "trellis.nats.stopped" });
    await nats.stop();
  });

  test("stop overtakes a restart, and nothing starts after it", async () => {
    const nats = await ManagedNats.start({ binary, dir: base });
    const restarts = [nats.restart(), nats.restart({ kill: true })].map((restart) =>
      restart.catch(() => "refused"),
    );
    await nats.stop();
    expect((await Promise.all(restarts)).at(-1)).toBe("refused");
    expect(nats.pid).toBeUndefined();
    expect(await nats.closed).toMatchObject({ reason: "stopped" });
  });

  test("a second one in the same folder is refused while the first runs", async () => {
    await using nats = await ManagedNats.start({ binary, dir: base });
    await expect(ManagedNats.start({ binary, dir: base })).rejects.toThrow(`process ${nats.pid}`);
    expect(alive(nats.pid)).toBe(true);
  }, 15_000);

  test("a taken port, a refused configuration, a folder that is a file, a binary that is none: one clear error", async () => {
    await using nats = await ManagedNats.start({ binary, dir: join(base, "one") });
    const start = (options: { config?: object; dir?: string; binary?: string }) =>
      ManagedNats.start({ binary, dir: join(base, "two"), ...options });
    await expect(start({ config: { port: nats.port } })).rejects.toThrow("address already in use");
    const refused = { code: "trellis.nats.config_refused", message: expect.stringContaining("bogus") };
    await expect(start({ config: { extra: "bogus: 1" } })).rejects.toMatchObject(refused);
    await writeFile(join(base, "file"), "");
    await expect(start({ dir: join(base, "file") })).rejects.toMatchObject({
      code: "trellis.nats.start_failed",
    });
    await expect(start({ binary: join(base, "none") })).rejects.toThrow("none");
  }, 15_000);

  test("an aborted start leaves nothing", async () => {
    const abort = new AbortController();
    const starting = ManagedNats.start({ binary, dir: base, signal: abort.signal });
    setTimeout(() => abort.abort(new Error("enough")), 5);
    await expect(starting).rejects.toThrow("enough");
  });
});

describe.runIf(process.platform === "linux")("no orphan remains", () => {
  const program = `
    import { ManagedNats } from ${JSON.stringify(join(import.meta.dirname, "server.ts"))};
    const nats = await ManagedNats.start({ binary: process.argv[1], dir: process.argv[2] });
    console.log(nats.pid);
    setInterval(() => undefined, 1_000);
  `;

  async function startInChild(dir: string) {
    const args = ["--import", "tsx", "--input-type=module", "-e", program, binary, dir];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(createInterface(child.stdout), "line");
    return { child, pid: Number(line) };
  }

  test("after kill -9 of the parent the server ends, and the folder can be used at once", async () => {
    const { child, pid } = await startInChild(base);
    const watchdog = await parentOf(pid);
    child.kill("SIGKILL");
    await using nats = await ManagedNats.start({ binary, dir: base });
    expect(alive(pid)).toBe(false);
    await eventually(() => !alive(watchdog));
    expect(nats.pid).not.toBe(pid);
  });

  test("kill -9 of the watchdog ends the server, and closes", async () => {
    const nats = await ManagedNats.start({ binary, dir: base });
    const { pid } = nats;
    process.kill(await parentOf(pid ?? 0), "SIGKILL");
    expect(await nats.closed).toMatchObject({ reason: "exited" });
    expect(alive(pid)).toBe(false);
  });

  test("a polite kill of the watchdog changes nothing", async () => {
    await using nats = await ManagedNats.start({ binary, dir: base });
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
      process.kill(await parentOf(nats.pid ?? 0), signal);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(alive(nats.pid)).toBe(true);
  });

  test("a server that ignores SIGTERM is forced after the grace time", async () => {
    const nats = await ManagedNats.start({ binary, dir: base, graceMs: 150 });
    process.kill(nats.pid ?? 0, "SIGSTOP");
    const started = performance.now();
    await nats.stop();
    expect(performance.now() - started).toBeLessThan(1_500);
  });

  test("a server that lost parent and watchdog is ended by the next start; a foreign process id is left alone", async () => {
    await mkdir(join(base, "dir"));
    const config = join(base, "dir", "nats.conf");
    await writeFile(config, `listen: "127.0.0.1:-1"\npid_file: ${quote(join(base, "dir", "nats.pid"))}\n`);
    const orphan = spawn(binary, ["-c", config], { stdio: "ignore" });
    const gone = once(orphan, "exit");
    await eventually(
      async () => (await readFile(join(base, "dir", "nats.pid"), "utf8")).trim() === String(orphan.pid),
    );
    await using nats = await ManagedNats.start({ binary, dir: join(base, "dir") });
    await gone;
    expect(alive(nats.pid)).toBe(true);
    await nats.stop();
    await writeFile(join(base, "dir", "nats.pid"), String(process.pid));
    await using again = await ManagedNats.start({ binary, dir: join(base, "dir") });
    expect(alive(again.pid)).toBe(true);
  });
});

test("the configuration for an operator's own server is accepted", async () => {
  const file = join(base, "external.conf");
  await writeFile(
    file,
    `${renderExternalConfig({ keys: publicKeysOf(newPlatformSeeds()) })}jetstream { store_dir: ${quote(base)} }`,
  );
  const child = spawn(binary, ["-t", "-c", file], { stdio: "ignore" });
  expect((await once(child, "exit"))[0]).toBe(0);
  expect(await askVersion(join(base, "nothing"))).toEqual({ reason: "does not run (ENOENT)" });
});
