import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { watchdogOwner } from "./watchdog.ts";

export type Leftover = "none" | "ended" | { readonly pid: number };

/** A server whose owner has died is about to end; one whose owner lives may be in the middle of its stop. */
const WAIT_MS = { dead: 8_000, alive: 2_000 } as const;

/**
 * Deals with a server that an earlier process left in this folder. One that is just shutting down (its parent was
 * killed and started again) is waited for; one without a watchdog is ended; one that somebody else runs is
 * reported. The process id in the file proves nothing: only a process that was started with our configuration
 * counts.
 */
export async function clearLeftover(pidFile: string, configFile: string): Promise<Leftover> {
  const pid = Number((await readFile(pidFile, "utf8").catch(() => "")).trim());
  if (!Number.isSafeInteger(pid) || pid <= 1 || !(await runsConfig(pid, configFile))) return "none";
  const parent = await describe((await describe(pid))?.parent ?? 0);
  const owner = watchdogOwner(parent?.command ?? "");
  if (owner === undefined) signal(pid, "SIGTERM");
  const waitMs = owner !== undefined && (await describe(owner)) !== undefined ? WAIT_MS.alive : WAIT_MS.dead;
  for (let waited = 0; waited < waitMs; waited += 25) {
    await delay(25);
    if (!(await runsConfig(pid, configFile))) return "ended";
  }
  return { pid };
}

async function runsConfig(pid: number, configFile: string): Promise<boolean> {
  return (await describe(pid))?.command.includes(configFile) === true;
}

interface ProcessInfo {
  readonly parent: number;
  readonly command: string;
}

/** From /proc where there is one, else from ps. */
async function describe(pid: number): Promise<ProcessInfo | undefined> {
  if (pid <= 0) return undefined;
  if (process.platform !== "linux") return await describeByPs(pid);
  try {
    const [status, command] = await Promise.all([
      readFile(`/proc/${pid}/status`, "utf8"),
      readFile(`/proc/${pid}/cmdline`, "utf8"),
    ]);
    return {
      parent: Number(/^PPid:\s*(\d+)/m.exec(status)?.[1] ?? 0),
      command: command.replaceAll("\0", " "),
    };
  } catch {
    return undefined;
  }
}

function describeByPs(pid: number): Promise<ProcessInfo | undefined> {
  return new Promise((resolve) => {
    execFile("ps", ["-ww", "-o", "ppid=", "-o", "command=", "-p", String(pid)], (error, stdout) => {
      const match = error === null ? /^\s*(\d+)\s+([\s\S]*)$/.exec(stdout) : null;
      resolve(match === null ? undefined : { parent: Number(match[1]), command: String(match[2]) });
    });
  });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has just ended.
  }
}
