import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** The ports that a platform had; it takes them again, so that what was connected finds it after a restart. */
export interface LastPorts {
  readonly http: number;
  readonly nats: number;
  readonly websocket: number;
}

const fileName = "ports.json";

export function keepPorts(data: string, ports: LastPorts): void {
  writeFileSync(join(data, fileName), JSON.stringify(ports));
}

/** The ports of the last time, if all of them are free now. */
export async function freeLastPorts(data: string): Promise<LastPorts | undefined> {
  const last = read(join(data, fileName));
  if (last === undefined) return undefined;
  const free = await Promise.all([last.http, last.nats, last.websocket].map(isFree));
  return free.every(Boolean) ? last : undefined;
}

function read(path: string): LastPorts | undefined {
  try {
    const { http, nats, websocket } = JSON.parse(readFileSync(path, "utf8")) as Partial<LastPorts>;
    if (typeof http !== "number" || typeof nats !== "number" || typeof websocket !== "number")
      return undefined;
    return { http, nats, websocket };
  } catch {
    return undefined;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
