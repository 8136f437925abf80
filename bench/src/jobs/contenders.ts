// Each system with its server, and one process that makes and works jobs in it: what shares a process is what would
// share one in production.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startNats, startTrellis } from "@trellis/testing";
import { startPostgres, startRedis } from "./servers.js";
import type { SystemName, Task } from "./system.js";

interface Answer {
  readonly numbers?: readonly number[];
  readonly error?: string;
}

interface Backing {
  readonly durability: string;
  readonly env: Record<string, string>;
  stop(): Promise<unknown>;
}

const backings: Record<SystemName, () => Promise<Backing>> = {
  trellis: async () => {
    const trellis = await startTrellis();
    return {
      durability:
        "nats-server, file storage, fsync every 10 s; transitions kept, and pictured in SQL by the control plane",
      env: trellis.env(),
      stop: () => trellis.stop(),
    };
  },
  BullMQ: async () => {
    const server = await startRedis();
    return {
      durability: "Redis, append-only file, fsync every second; finished jobs kept",
      env: { BENCH_PORT: String(server.port) },
      stop: () => server.stop(),
    };
  },
  "pg-boss": async () => {
    const server = await startPostgres();
    return {
      durability: "PostgreSQL, fsync at every commit; finished jobs kept",
      env: { BENCH_PORT: String(server.port) },
      stop: () => server.stop(),
    };
  },
  bare: async () => {
    const nats = await startNats();
    return {
      durability: "nats-server, file storage, fsync every 10 s; the fenced writes that ours need, by hand",
      env: { BENCH_NATS: nats.url },
      stop: () => nats.stop(),
    };
  },
};

/** A system that takes part. */
export class Contender implements AsyncDisposable {
  readonly name: SystemName;
  readonly durability: string;
  readonly #backing: Backing;
  readonly #client: ChildProcess;

  static async start(name: SystemName): Promise<Contender> {
    const backing = await backings[name]();
    const script = fileURLToPath(new URL("./client.js", import.meta.url));
    const env = { ...process.env, ...backing.env };
    const client = fork(script, [name], {
      env,
      execArgv: ["--expose-gc"],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const contender = new Contender(name, backing, client);
    try {
      await contender.#answer();
      return contender;
    } catch (error) {
      await contender[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(name: SystemName, backing: Backing, client: ChildProcess) {
    this.name = name;
    this.durability = backing.durability;
    this.#backing = backing;
    this.#client = client;
  }

  async perform(task: Task): Promise<readonly number[]> {
    const answer = this.#answer();
    this.#client.send(task);
    return answer;
  }

  async #answer(): Promise<readonly number[]> {
    const done = new AbortController();
    const { signal } = done;
    try {
      const exit = once(this.#client, "exit", { signal }).then(([code]): Answer => {
        return { error: `its process ended with ${String(code)}` };
      });
      const message = once(this.#client, "message", { signal }).then(([data]) => data as Answer);
      const { numbers = [], error } = await Promise.race([message, exit]);
      if (error !== undefined) throw new Error(`${this.name}: ${error}`);
      return numbers;
    } finally {
      done.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const client = this.#client;
    if (client.exitCode === null && client.signalCode === null) {
      const ended = once(client, "exit");
      if (client.connected) client.send("end");
      const force = setTimeout(() => client.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(force);
    }
    await this.#backing.stop();
  }
}
