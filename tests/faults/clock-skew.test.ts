import {
  type Clock,
  connectClientWith,
  connectServiceWith,
  nodePlatform,
  systemClock,
} from "@trellis/runtime/node";
import { startTrellis, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workApp, workService } from "./contract.ts";
import { nothingDone, plainHandlers, type WorkClient, type WorkService } from "./kit.ts";

const day = 86_400_000;

/** A machine's clocks that can be wrong, and that a sleep of the machine drives apart. */
class BadClock implements Clock {
  #wall: number;
  #slept = 0;

  constructor(wallMs: number) {
    this.#wall = wallMs;
  }

  now(): number {
    return systemClock.now() + this.#wall;
  }

  /** Stands still while the machine sleeps: afterwards it is behind. */
  monotonic(): number {
    return systemClock.monotonic() - this.#slept;
  }

  sleep(ms: number): void {
    this.#slept += ms;
  }

  setWall(ms: number): void {
    this.#wall = ms;
  }
}

describe("clocks that are wrong", () => {
  let trellis: TestTrellis;
  beforeAll(async () => {
    trellis = await startTrellis();
  });
  afterAll(() => trellis.stop());

  const args = () => ({ trellisUrl: trellis.url, runtime: { log: false } as const });
  const deps = (clock: Clock) => ({
    clock,
    platform: { ...nodePlatform, discover: () => ({ production: false, devToken: trellis.devToken }) },
  });

  async function connectBoth(
    clocks: { service: Clock; client: Clock },
    use: (both: { service: WorkService; client: WorkClient }) => Promise<void>,
  ): Promise<void> {
    const service = await connectServiceWith(
      { participant: workService, ...args() },
      deps(clocks.service),
    ).orThrow();
    plainHandlers(service, nothingDone());
    await service.start();
    const client = await connectClientWith(
      { participant: workApp, ...args() },
      deps(clocks.client),
    ).orThrow();
    try {
      await use({ service, client });
    } finally {
      await client.close();
      await service.stop();
    }
  }

  for (const [serviceMs, clientMs] of [
    [0, day],
    [0, -day],
    [day, -day],
    [-day, day],
  ] as const) {
    it(`provider off by ${serviceMs / day} days, caller by ${clientMs / day}: calls work`, async () => {
      const clocks = { service: new BadClock(serviceMs), client: new BadClock(clientMs) };
      await connectBoth(clocks, async ({ client }) => {
        for (let n = 0; n < 20; n += 1) expect((await client.rpc.work.count({ n })).isOk()).toBe(true);
        // Somebody sets them right under the running process.
        clocks.service.setWall(0);
        clocks.client.setWall(0);
        expect((await client.rpc.work.slow({ n: 1, ms: 20 })).isOk()).toBe(true);
      });
    });
  }

  it("a caller or a provider that slept for ten minutes on a live socket is set right by the first call", async () => {
    const clocks = { service: new BadClock(0), client: new BadClock(0) };
    await connectBoth(clocks, async ({ client }) => {
      expect((await client.rpc.work.count({ n: 1 })).isOk()).toBe(true);
      clocks.client.sleep(600_000);
      expect((await client.rpc.work.count({ n: 2 }, { timeout: 2_000 })).orThrow().n).toBe(2);
      clocks.service.sleep(600_000);
      expect((await client.rpc.work.count({ n: 3 }, { timeout: 2_000 })).orThrow().n).toBe(3);
      expect((await client.rpc.work.count({ n: 4 }, { timeout: 2_000 })).orThrow().n).toBe(4);
    });
  });
});
