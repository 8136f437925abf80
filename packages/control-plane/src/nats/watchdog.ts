import { type ChildProcess, spawn } from "node:child_process";

/**
 * The watchdog: a shell (about 1 MB, started in a millisecond) between us and the server. It reads its standard
 * input, which only this process holds open, so it learns of our death whatever killed us, and then ends the
 * server: politely, after the grace time by force. The server is its own child, hence its process id cannot have
 * been taken by another process. The reader is a process of its own, so that the server does not survive even when
 * the waiting shell is killed. Orders on standard input: a line `KILL`; the end of the input means stop.
 *
 * $1 is the grace time in twentieths of a second, the rest is the command.
 */
const WATCHDOG = `
grace=$1; shift
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
(
  while read -r order <&3; do
    if [ "$order" = KILL ]; then kill -KILL "$server" 2>/dev/null; fi
  done
  kill -TERM "$server" 2>/dev/null
  while [ "$grace" -gt 0 ] && kill -0 "$server" 2>/dev/null; do
    sleep 0.05 2>/dev/null 3<&-
    grace=$((grace - 1))
  done
  kill -KILL "$server" 2>/dev/null
) &
reader=$!
exec 3<&-
trap '' TERM INT HUP
wait "$server"
code=$?
kill -KILL "$reader" 2>/dev/null
exit "$code"
`;

/** What the watchdog is given beyond the grace time before its whole session is killed. */
const FORCE_AFTER_MS = 1_000;

/** How the watchdog is called in a list of processes; the id of the process that owns it follows. */
const NAME = "trellis-nats-watchdog:";

/** The owner of the watchdog with this command line; undefined when it is not a watchdog's. */
export function watchdogOwner(command: string): number | undefined {
  const match = new RegExp(`${NAME}(\\d+)`).exec(command);
  return match === null ? undefined : Number(match[1]);
}

/** What the server may leave on standard error before it opens its log, in characters. */
const ERROR_TAIL = 8_192;

export interface GuardedExit {
  /** Exit code; 128 plus the signal's number when the server died of a signal; null when the watchdog was killed. */
  readonly code: number | null;
  /** The end of what was written to standard error. */
  readonly stderr: string;
}

/** A server below its watchdog. */
export interface GuardedServer {
  /** Resolves when server and watchdog are gone. Never rejects. */
  readonly exited: Promise<GuardedExit>;
  /** Asks the server to end, and forces it after the grace time. Idempotent. */
  end(): void;
  /** SIGKILL for the server, as a crash. */
  kill(): void;
}

export interface GuardOptions {
  readonly binary: string;
  readonly args: readonly string[];
  /** Time between SIGTERM and SIGKILL, ms. */
  readonly graceMs: number;
}

/** Starts a server that cannot outlive this process. It is in a session of its own: Ctrl-C does not reach it. */
export function spawnGuarded(options: GuardOptions): GuardedServer {
  const grace = Math.max(1, Math.ceil(options.graceMs / 50));
  const args = ["-c", WATCHDOG, `${NAME}${process.pid}`, String(grace), options.binary, ...options.args];
  const child = spawn("/bin/sh", args, { stdio: ["pipe", "ignore", "pipe"], detached: true });
  // The pipe breaks when the watchdog goes first; that is told by `exited`.
  child.stdin.on("error", () => undefined);
  let force: NodeJS.Timeout | undefined;
  const end = () => {
    child.stdin.end();
    force ??= setTimeout(() => killSession(child), options.graceMs + FORCE_AFTER_MS);
  };
  const exited = exitOf(child, end);
  void exited.then(() => clearTimeout(force));
  return { exited, end, kill: () => void child.stdin.write("KILL\n") };
}

/** The last resort, when the watchdog itself was tampered with: its session holds it and the server, nothing else. */
function killSession(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // All of it has just ended.
  }
}

function exitOf(child: ChildProcess, release: () => void): Promise<GuardedExit> {
  return new Promise((resolve) => {
    let stderr = "";
    child.stderr?.setEncoding("utf8");
    child.stderr?.on("data", (text: string) => {
      stderr = (stderr + text).slice(-ERROR_TAIL);
    });
    child.once("error", (error) => resolve({ code: null, stderr: error.message }));
    // Killed from outside: the reader, which is still there, is to end the server now.
    child.once("exit", release);
    // "close" comes after the last holder of standard error, the server included, is gone.
    child.once("close", (code) => resolve({ code, stderr }));
  });
}
