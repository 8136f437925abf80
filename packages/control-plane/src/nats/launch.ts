import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type ManagedNatsConfig, type ManagedNatsPaths, renderManagedConfig } from "./config.ts";
import { clearLeftover } from "./leftover.ts";
import { NatsError } from "./nats-error.ts";
import { type GuardedServer, spawnGuarded } from "./watchdog.ts";

/** How much of the log is looked at for the reason of a failed start, in bytes. */
const LOG_TAIL = 8_192;
export interface LaunchOptions {
  readonly binary: string;
  readonly dir: string;
  readonly config: ManagedNatsConfig;
  readonly readyTimeoutMs: number;
  readonly graceMs: number;
  /** How long a port that is in use is tried again, ms: at a restart it may be for a moment. */
  readonly portRetryMs: number;
  readonly signal: AbortSignal;
}

export interface Launched {
  readonly server: GuardedServer;
  readonly pid: number;
  readonly port: number;
  readonly websocketPort: number;
}

/** Writes the configuration, starts the server and waits until it takes connections. Leaves nothing when it fails. */
export async function launch(options: LaunchOptions): Promise<Launched> {
  const paths = await prepareDir(options);
  const giveUp = performance.now() + options.portRetryMs;
  for (;;) {
    options.signal.throwIfAborted();
    await rm(paths.portsDir, { recursive: true, force: true });
    await mkdir(paths.portsDir, { mode: 0o700 });
    const logStart = await sizeOf(paths.logFile);
    const args = ["-c", paths.configFile];
    const server = spawnGuarded({ binary: options.binary, args, graceMs: options.graceMs });
    try {
      return { server, ...(await whenReady(server, { ...paths, logStart }, options)) };
    } catch (error) {
      server.end();
      await server.exited;
      const message = error instanceof Error ? error.message : "";
      if (!message.includes("address already in use") || performance.now() > giveUp) throw error;
      await delay(100);
    }
  }
}

interface Paths extends ManagedNatsPaths {
  readonly configFile: string;
}

async function prepareDir(options: LaunchOptions): Promise<Paths> {
  const { dir, config } = options;
  const paths: Paths = {
    configFile: join(dir, "nats.conf"),
    storeDir: dir,
    logFile: join(dir, "nats.log"),
    pidFile: join(dir, "nats.pid"),
    portsDir: join(dir, "ports"),
  };
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const leftover = await clearLeftover(paths.pidFile, paths.configFile);
    if (typeof leftover === "object") throw inUse(dir, leftover.pid);
    const staged = `${paths.configFile}.${process.pid}`;
    await writeFile(staged, renderManagedConfig(config, paths), { mode: 0o600 });
    await rename(staged, paths.configFile);
  } catch (error) {
    if (error instanceof NatsError) throw error;
    throw new NatsError({
      code: "trellis.nats.start_failed",
      message: `the folder of the managed nats-server cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      hint: "Choose a folder that this user may write, on a disk with space.",
      cause: error,
    });
  }
  return paths;
}

function inUse(dir: string, pid: number): NatsError {
  return new NatsError({
    code: "trellis.nats.start_failed",
    message: `another Trellis runs its nats-server (process ${pid}) in ${dir}`,
    hint: "Stop that one, or give this one a folder of its own.",
  });
}

type Ready = Omit<Launched, "server">;

async function whenReady(
  server: GuardedServer,
  paths: Paths & { logStart: number },
  options: LaunchOptions,
): Promise<Ready> {
  let exit: { readonly code: number | null; readonly stderr: string } | undefined;
  void server.exited.then((value) => {
    exit = value;
  });
  const started = performance.now();
  for (;;) {
    options.signal.throwIfAborted();
    if (exit !== undefined) throw await startFailure(exit, paths);
    const ready = await readPorts(paths.portsDir);
    if (ready !== undefined && (await accepts(ready.port))) return ready;
    const waited = performance.now() - started;
    if (waited > options.readyTimeoutMs) {
      throw new NatsError({
        code: "trellis.nats.start_failed",
        message: `nats-server was not ready within ${options.readyTimeoutMs} ms`,
        hint: `See ${paths.logFile}. Reading a large store takes its time: allow it more.`,
      });
    }
    await delay(waited < 1_000 ? 4 : 50);
  }
}

/** The server names the file after its process id and writes it when all its listeners are open. */
async function readPorts(portsDir: string): Promise<Ready | undefined> {
  const name = (await readdir(portsDir)).find((candidate) => candidate.endsWith(".ports"));
  const pid = Number(/_(\d+)\.ports$/.exec(name ?? "")?.[1]);
  if (name === undefined || !Number.isSafeInteger(pid)) return undefined;
  const text = await readFile(join(portsDir, name), "utf8");
  const port = /"nats":\s*\[\s*"[^"]*:(\d+)"/.exec(text)?.[1];
  const websocketPort = /"websocket":\s*\[\s*"[^"]*:(\d+)"/.exec(text)?.[1];
  if (port === undefined || websocketPort === undefined) return undefined;
  return { pid, port: Number(port), websocketPort: Number(websocketPort) };
}

/** True when the server greets: the first thing it sends is INFO. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port, timeout: 1_000 });
    const end = (greeted: boolean) => {
      socket.destroy();
      resolve(greeted);
    };
    socket.once("data", (data) => end(data.toString("latin1").startsWith("INFO")));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}

/** Refused configuration shows on standard error; what fails later stands in the log. */
async function startFailure(
  exit: { code: number | null; stderr: string },
  paths: Paths & { logStart: number },
): Promise<NatsError> {
  const log = await readFrom(paths.logFile, paths.logStart);
  const fatal = log.split("\n").findLast((line) => line.includes("[FTL]"));
  const refused = exit.stderr.includes(paths.configFile);
  const reason = (refused ? exit.stderr : (fatal?.replace(/^.*\[FTL\]\s*/, "") ?? exit.stderr)).trim();
  return new NatsError({
    code: refused ? "trellis.nats.config_refused" : "trellis.nats.start_failed",
    message: `nats-server ended at its start (code ${exit.code}): ${reason === "" ? "it gave no reason" : reason}`,
    hint: refused ? `The configuration is ${paths.configFile}.` : `Its log is ${paths.logFile}.`,
  });
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** What this start has added to the log, the end of it where that is much. */
async function readFrom(path: string, start: number): Promise<string> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return "";
  try {
    const { size } = await file.stat();
    const from = Math.max(size < start ? 0 : start, size - LOG_TAIL);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
