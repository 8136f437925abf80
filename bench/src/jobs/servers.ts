// The servers of the peers, real ones with durable settings, on 127.0.0.1 only: from PATH, else (redis) Debian's
// packages, unpacked into a temporary folder.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";

const exec = promisify(execFile);
/** PostgreSQL refuses to run as root. */
const nobody = 65_534;

export interface PeerServer extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
}

export async function startRedis(): Promise<PeerServer> {
  const dir = mkdtempSync(join(tmpdir(), "bench-redis-"));
  const { command, env } = await redisCommand(dir);
  const port = await freePort();
  const settings = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--dir", dir];
  const args = ["--bind", "127.0.0.1", "--port", String(port), ...settings];
  return await serve(spawn(command, args, { env, stdio: "ignore" }), { port, dir });
}

export async function startPostgres(): Promise<PeerServer> {
  const dir = mkdtempSync(join(tmpdir(), "bench-postgres-"));
  const root = process.getuid?.() === 0;
  const user = root ? { uid: nobody, gid: nobody } : {};
  if (root) chownSync(dir, nobody, nobody);
  const data = join(dir, "data");
  await exec("initdb", ["-D", data, "-U", "bench", "-A", "trust", "--no-sync"], { ...user, cwd: dir });
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${dir}`, "synchronous_commit=on"];
  const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  return await serve(spawn("postgres", args, { ...user, cwd: dir, stdio: "ignore" }), { port, dir });
}

async function redisCommand(dir: string): Promise<{ command: string; env: NodeJS.ProcessEnv }> {
  const installed = await exec("redis-server", ["--version"]).catch(() => undefined);
  if (installed !== undefined) return { command: "redis-server", env: process.env };
  const names = ["redis-server", "redis-tools", "liblzf1", "libjemalloc2"];
  await exec("apt-get", ["--quiet=2", "download", ...names], { cwd: dir, timeout: 90_000 });
  const root = join(dir, "root");
  for (const file of readdirSync(dir).filter((name) => name.endsWith(".deb")))
    await exec("dpkg-deb", ["-x", file, root], { cwd: dir });
  const libraries = readdirSync(join(root, "usr", "lib")).map((name) => join(root, "usr", "lib", name));
  const env = { ...process.env, LD_LIBRARY_PATH: libraries.join(":") };
  return { command: join(root, "usr", "bin", "redis-server"), env };
}

async function serve(
  child: ChildProcess,
  { port, dir }: { readonly port: number; readonly dir: string },
): Promise<PeerServer> {
  const ended = once(child, "exit").catch((error: unknown) => error);
  const stop = async () => {
    // Postgres: fast shutdown; redis takes it as an interrupt.
    if (child.exitCode === null && child.pid !== undefined) child.kill("SIGINT");
    await ended;
    rmSync(dir, { recursive: true, force: true });
  };
  for (let attempt = 0; attempt < 200; attempt++) {
    if (child.exitCode !== null || child.pid === undefined) break;
    if (await listens(port)) return { port, pid: child.pid, [Symbol.asyncDispose]: stop };
    await pause(100);
  }
  await stop();
  throw new Error("the server did not start");
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return await new Promise((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  }).then((up) => {
    socket.destroy();
    return up === true;
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
