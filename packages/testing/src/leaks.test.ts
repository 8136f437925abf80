import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { watchLeaks } from "./leaks.ts";
import { stressStartStop } from "./stress-start-stop.ts";

describe("watchLeaks", () => {
  test("names timers, servers and children, and is content when they are gone", async () => {
    const watch = await watchLeaks();
    const timer = setTimeout(() => undefined, 60_000);
    const server = createServer().listen(0);
    await once(server, "listening");
    const child = spawn("sleep", ["60"]);
    await once(child, "spawn");
    const found = (await watch.leaks()).join("\n");
    expect(found).toContain("Timeout");
    expect(found).toContain("TCP");
    expect(found).toContain(`child process ${child.pid}`);
    await expect(watch.expectNoLeaks({ within: 20 })).rejects.toThrow("left behind");
    clearTimeout(timer);
    server.close();
    child.kill();
    await watch.expectNoLeaks();
  });

  test("does not count what keeps no process alive", async () => {
    const watch = await watchLeaks();
    const timer = setTimeout(() => undefined, 60_000).unref();
    expect(await watch.leaks()).toEqual([]);
    clearTimeout(timer);
  });
});

describe("stressStartStop", () => {
  class Subject {
    #timer: NodeJS.Timeout | undefined;
    #stopped = false;
    readonly #careful: boolean;
    constructor(careful: boolean) {
      this.#careful = careful;
    }
    async start(): Promise<void> {
      await new Promise((resolve) => setTimeout(resolve, 3));
      if (this.#careful && this.#stopped) throw new Error("stopped");
      this.#timer = setTimeout(() => undefined, 60_000);
      LEFT.add(this.#timer);
    }
    async stop(): Promise<void> {
      this.#stopped = true;
      clearTimeout(this.#timer);
    }
  }
  const LEFT = new Set<NodeJS.Timeout>();

  test("passes what is careful and names the scenario of what is not", async () => {
    await stressStartStop(() => new Subject(true), { rounds: 1 });
    await expect(stressStartStop(() => new Subject(false), { rounds: 1, settle: 50 })).rejects.toThrow(
      /^stop while starting: left behind: \d more Timeout$/,
    );
    for (const timer of LEFT) clearTimeout(timer);
    const hanging = () => ({ start: async () => undefined, stop: () => new Promise(() => undefined) });
    await expect(stressStartStop(hanging, { rounds: 1, timeout: 20 })).rejects.toThrow(
      "stop without start: stop took over 20 ms",
    );
  });
});

describe("eventually", () => {
  test("returns the value, retries errors and false, throws the last error", async () => {
    let tries = 0;
    const probe = () => {
      tries += 1;
      if (tries === 1) return false;
      if (tries === 2) throw new Error("not yet");
      return tries;
    };
    expect(await eventually(probe, { interval: 1 })).toBe(3);
    await expect(eventually(() => Promise.reject(new Error("never")), { timeout: 30 })).rejects.toThrow(
      "never",
    );
    await expect(eventually(() => false, { timeout: 30 })).rejects.toThrow("still false");
    await expect(eventually(() => new Promise(() => undefined), { timeout: 30 })).rejects.toThrow(
      "did not answer",
    );
  });
});
