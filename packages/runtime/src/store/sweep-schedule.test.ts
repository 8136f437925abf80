import { eventually, FakeClock } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../logging/logger.ts";
import { type Sweepable, SweepSchedule } from "./sweep-schedule.ts";

const hour = 3_600_000;

function schedule(stores: () => readonly Sweepable[]) {
  const clock = new FakeClock();
  const logged: string[] = [];
  const log = {
    ...silentLogger,
    info: (_: object, message = "") => void logged.push(message),
    warn: (_: object, message = "") => void logged.push(message),
  };
  const sweeps = new SweepSchedule({ stores, log, timers: clock, random: () => 0.5 });
  return { clock, logged, sweeps };
}

describe("the sweeps of a service's stores", () => {
  it("begin a while after the start, and are repeated every few hours, whatever fails", async () => {
    const swept: string[] = [];
    let bound: string[] = ["a"];
    const { clock, logged, sweeps } = schedule(() =>
      bound.map((alias) => ({
        alias,
        sweep: async () => {
          swept.push(alias);
          if (alias === "broken") throw new Error("no");
          return 1;
        },
      })),
    );
    sweeps.start();
    clock.advance(59_000);
    expect(swept).toEqual([]);
    clock.advance(1_000);
    await eventually(() => clock.timers === 1);
    expect(swept).toEqual(["a"]);
    // What a refresh has bound since is swept too.
    bound = ["broken", "b"];
    clock.advance(4 * hour);
    await eventually(() => clock.timers === 1);
    expect(swept).toEqual(["a", "broken", "b"]);
    expect(logged).toHaveLength(3);
    sweeps.stop();
    expect(clock.timers).toBe(0);
  });

  it("stop in the middle: no further store is touched, and no timer stays", async () => {
    const swept: string[] = [];
    const { clock, logged, sweeps } = schedule(() =>
      ["a", "b"].map((alias) => ({
        alias,
        sweep: async () => {
          swept.push(alias);
          sweeps.stop();
          throw new Error("the connection was closed");
        },
      })),
    );
    sweeps.start();
    clock.advance(hour);
    await new Promise(setImmediate);
    expect(swept).toEqual(["a"]);
    expect(clock.timers).toBe(0);
    expect(logged).toEqual([]);
  });
});
