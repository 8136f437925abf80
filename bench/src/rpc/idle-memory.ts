import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TestTrellis } from "@trellis/testing";

/** Resident memory, MiB, of a service that has done nothing for a while; built JavaScript, default flags. */
export async function idleMemory(trellis: TestTrellis, idleMs: number): Promise<number> {
  const child = fork(fileURLToPath(new URL("./idle-service.js", import.meta.url)), {
    env: { ...process.env, ...trellis.env() },
    execArgv: [],
  });
  await once(child, "message");
  await pause(idleMs);
  child.send("memory");
  const [rss] = await once(child, "message");
  child.kill();
  return Number(rss) / 2 ** 20;
}
