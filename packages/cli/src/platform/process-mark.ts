import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";

/** A process id together with when it was started: ids are used again, this pair is not. */
export interface ProcessMark {
  readonly pid: number;
  readonly started: string;
}

export function ownMark(): ProcessMark {
  return { pid: process.pid, started: startOf(process.pid) ?? "unknown" };
}

/** True while that very process runs. */
export function isRunning({ pid, started }: ProcessMark): boolean {
  return pid > 0 && startOf(pid) === started;
}

/** When a process was started, in whatever form the system tells it; `undefined` when there is none. */
function startOf(pid: number): string | undefined {
  if (process.platform === "linux") return startOnLinux(pid);
  if (process.platform === "win32") return exists(pid) ? "unknown" : undefined;
  try {
    const text = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim();
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Field 22 of /proc/<pid>/stat: clock ticks since boot. A zombie counts as gone. */
function startOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in brackets, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
