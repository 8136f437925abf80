// The servers of the peers, real ones with durable settings, on 127.0.0.1 only.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { debianProgram } from "./debian.js";

const exec = promisify(execFile);
/** PostgreSQL refuses to run as root. */
const nobody = 65_534;

const redisPackages = [
  "redis-server",
  "redis-tools",
  "liblzf1",
  "libjemalloc2",
  "liblua5.1-0",
  "lua-cjson",
  "lua-bitop",
];
const postgresPackages = [
  "postgresql-15",
  "libpq5",
  "libllvm14",
  "libxml2",
  "libicu72",
  "libldap-2.5-0",
  "libsasl2-2",
];

export interface PeerServer {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<PeerServer> {
  const dir = mkdtempSync(join(tmpdir(), "bench-redis-"));
  const { command, env } = await debianProgram("redis-server", redisPackages);
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
  const { command, env } = await debianProgram("postgres", postgresPackages);
  const initdb = command === "postgres" ? "initdb" : join(dirname(command), "initdb");
  await exec(initdb, ["-D", data, "-U", "bench", "-A", "trust", "--no-sync"], { ...user, env, cwd: dir });
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${dir}`, "synchronous_commit=on"];
  const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  return await serve(spawn(command, args, { ...user, env, cwd: dir, stdio: "ignore" }), { port, dir });
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
    if (await listens(port)) return { port, stop };
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
