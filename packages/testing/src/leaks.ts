import { readdir, readFile } from "node:fs/promises";

/** Passing work of the event loop, not something that somebody has to close. */
const PASSING = new Set([
  "Immediate",
  "FSReqCallback",
  "FSReqPromise",
  "FileHandleCloseReq",
  "CloseReq",
  "GetAddrInfoReqWrap",
  "GetNameInfoReqWrap",
  "QueryReqWrap",
  "TCPConnectWrap",
  "PipeConnectWrap",
  "WriteWrap",
  "ShutdownWrap",
  "RandomBytesRequest",
  "PBKDF2Request",
  "ScryptRequest",
  "SignRequest",
  "KeyPairGenRequest",
  "HashRequest",
  "ZlibContext",
  "Zlib",
]);

export interface LeakOptions {
  /** How long things may take to disappear, ms. Default 1 000: a socket closes a turn after it was asked to. */
  readonly within?: number;
}

export interface LeakWatch {
  /** What is there now and was not when the watch began: "2 more Timeout", "child process 4711 (sh)". */
  leaks(): Promise<string[]>;
  /** Throws, naming them, when leaks remain after the time that they are given. */
  expectNoLeaks(options?: LeakOptions): Promise<void>;
}

interface Snapshot {
  readonly resources: ReadonlyMap<string, number>;
  readonly children: ReadonlyMap<number, string>;
}

/**
 * Remembers the timers, sockets, servers, workers and child processes of this process. Call it before a test and
 * `expectNoLeaks` after it. Only what would keep a process alive counts: an unref'd timer does not.
 */
export async function watchLeaks(): Promise<LeakWatch> {
  const before = await snapshot();
  const leaks = async () => difference(before, await snapshot());
  return {
    leaks,
    async expectNoLeaks({ within = 1_000 } = {}) {
      const end = performance.now() + within;
      let found = await leaks();
      for (let pause = 1; found.length > 0 && performance.now() < end; pause = Math.min(50, pause * 2)) {
        await new Promise((resolve) => setTimeout(resolve, pause));
        found = await leaks();
      }
      if (found.length > 0) throw new Error(`left behind: ${found.join(", ")}`);
    },
  };
}

async function snapshot(): Promise<Snapshot> {
  const children = await childProcesses();
  const resources = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) {
    if (!PASSING.has(type)) resources.set(type, (resources.get(type) ?? 0) + 1);
  }
  return { resources, children };
}

function difference(before: Snapshot, after: Snapshot): string[] {
  const leaks: string[] = [];
  for (const [type, count] of after.resources) {
    const more = count - (before.resources.get(type) ?? 0);
    if (more > 0) leaks.push(`${more} more ${type}`);
  }
  for (const [pid, name] of after.children) {
    if (!before.children.has(pid)) leaks.push(`child process ${pid} (${name})`);
  }
  return leaks;
}

/** Living children of this process, where there is a /proc; elsewhere `ProcessWrap` resources have to do. */
async function childProcesses(): Promise<Map<number, string>> {
  const children = new Map<number, string>();
  const tasks = await readdir("/proc/self/task").catch(() => []);
  for (const task of tasks) {
    const list = await readFile(`/proc/self/task/${task}/children`, "utf8").catch(() => "");
    for (const pid of list.split(" ").filter((text) => text !== "")) {
      const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => undefined);
      if (name !== undefined) children.set(Number(pid), name.trim());
    }
  }
  return children;
}
