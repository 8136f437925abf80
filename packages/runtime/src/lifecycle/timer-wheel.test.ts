import { FakeClock } from "@trellis/testing";
import { describe, expect, test } from "vitest";
import { TimerWheel, WheelEntry } from "./timer-wheel.ts";

class Entry extends WheelEntry {
  readonly name: string;
  readonly #log: string[];
  #then: (() => void) | undefined;

  constructor(name: string, log: string[], then?: () => void) {
    super();
    this.name = name;
    this.#log = log;
    this.#then = then;
  }

  override expire(): void {
    this.#log.push(this.name);
    this.#then?.();
  }
}

function setup(options: { tickMs?: number; slots?: number; onError?: (error: unknown) => void } = {}) {
  const clock = new FakeClock();
  const log: string[] = [];
  return { clock, log, wheel: new TimerWheel({ ...options, clock, timers: clock }) };
}

describe("TimerWheel", () => {
  test("expires in order, never early, at most one tick late", () => {
    const { clock, log, wheel } = setup();
    wheel.schedule(new Entry("100", log), 100);
    wheel.schedule(new Entry("20", log), 20);
    clock.advance(19);
    expect(log).toEqual([]);
    clock.advance(8);
    expect(log).toEqual(["20"]);
    clock.advance(72);
    expect(log).toEqual(["20"]);
    clock.advance(8);
    expect(log).toEqual(["20", "100"]);
    expect(wheel.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test("delays of several revolutions", () => {
    const { clock, log, wheel } = setup({ slots: 4 });
    const delays = [5, 31, 32, 33, 64, 100, 1_000, 30_000];
    for (const delay of delays) wheel.schedule(new Entry(String(delay), log), delay);
    for (const delay of delays) {
      clock.advance(delay - clock.monotonic());
      clock.advance(0);
      expect(log.filter((name) => Number(name) > delay)).toEqual([]);
    }
    clock.advance(8);
    expect(log).toEqual(delays.map(String));
  });

  test("property: every entry expires in [delay, delay + tick], whatever else is scheduled and cancelled", () => {
    const { clock, wheel } = setup({ slots: 16 });
    let seed = 7;
    const random = (bound: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % bound;
    };
    class Timed extends WheelEntry {
      due = 0;
      override expire(): void {
        const late = clock.monotonic() - this.due;
        expect(late).toBeGreaterThanOrEqual(0);
        expect(late).toBeLessThanOrEqual(8);
        expired += 1;
      }
    }
    let expired = 0;
    let cancelled = 0;
    const entries: Timed[] = [];
    for (let step = 0; step < 3_000; step += 1) {
      const entry = new Timed();
      const delay = random(400);
      entry.due = clock.monotonic() + delay;
      wheel.schedule(entry, delay);
      entries.push(entry);
      const victim = entries[random(entries.length)];
      if (victim?.scheduled === true && random(2) === 0) {
        wheel.cancel(victim);
        cancelled += 1;
      }
      clock.advance(random(10));
    }
    clock.advance(1_000);
    expect(expired + cancelled).toBe(3_000);
    expect(wheel.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test("after a stall everything overdue expires, the rest stays", () => {
    const { clock, log, wheel } = setup({ slots: 8 });
    for (const delay of [10, 200, 500, 5_000]) wheel.schedule(new Entry(String(delay), log), delay);
    clock.stall(1_000);
    expect(log.sort()).toEqual(["10", "200", "500"]);
    clock.advance(4_016);
    expect(log).toContain("5000");
  });

  test("a cancelled entry never expires and is not held", () => {
    const { clock, log, wheel } = setup();
    const entry = new Entry("x", log);
    wheel.schedule(entry, 50);
    wheel.cancel(entry);
    wheel.cancel(entry);
    expect(entry.scheduled).toBe(false);
    expect([entry.wheelNext, entry.wheelPrevious, entry.wheelOwner]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    clock.advance(100);
    expect(log).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  test("scheduling again moves an entry; Infinity takes it out", () => {
    const { clock, log, wheel } = setup();
    const entry = new Entry("x", log);
    wheel.schedule(entry, 50);
    wheel.schedule(entry, 500);
    expect(wheel.size).toBe(1);
    clock.advance(400);
    expect(log).toEqual([]);
    wheel.schedule(entry, Number.POSITIVE_INFINITY);
    expect(wheel.size).toBe(0);
    clock.advance(1_000);
    expect(log).toEqual([]);
    expect(() => wheel.schedule(entry, Number.NaN)).toThrow(RangeError);
  });

  test("a callback may schedule, cancel a sibling that is due too, and re-enter", () => {
    const { clock, log, wheel } = setup();
    const sibling = new Entry("sibling", log);
    const later = new Entry("later", log);
    const sooner = new Entry("sooner", log);
    wheel.schedule(
      new Entry("first", log, () => {
        wheel.cancel(sibling);
        wheel.schedule(later, 2_000);
        wheel.schedule(sooner, 0);
      }),
      16,
    );
    wheel.schedule(sibling, 16);
    wheel.schedule(new Entry("middle", log), 500);
    clock.advance(16);
    expect(log).toEqual(["first"]);
    clock.advance(8);
    expect(log).toEqual(["first", "sooner"]);
    clock.advance(3_000);
    expect(log).toEqual(["first", "sooner", "middle", "later"]);
  });

  test("one exception stops neither the others nor the wheel", () => {
    const errors: unknown[] = [];
    const { clock, log, wheel } = setup({ onError: (error) => errors.push(error) });
    const fault = new Error("fault");
    wheel.schedule(
      new Entry("bad", log, () => {
        throw fault;
      }),
      8,
    );
    wheel.schedule(new Entry("good", log), 8);
    wheel.schedule(new Entry("later", log), 100);
    clock.advance(200);
    expect(log).toEqual(["bad", "good", "later"]);
    expect(errors).toEqual([fault]);
  });

  test("one timer at most; none after stop", () => {
    const { clock, log, wheel } = setup();
    for (let index = 100; index > 0; index -= 1) wheel.schedule(new Entry(String(index), log), index * 10);
    expect(clock.timers).toBe(1);
    wheel.stop();
    wheel.stop();
    expect(clock.timers).toBe(0);
    expect(wheel.size).toBe(0);
    clock.advance(10_000);
    expect(log).toEqual([]);
    expect(() => wheel.schedule(new Entry("x", log), 1)).toThrow("stopped");
  });

  test("on the real clock: expires, and 200 000 schedule and cancel are cheap", async () => {
    const wheel = new TimerWheel();
    await new Promise<void>((resolve) => wheel.schedule(new Entry("x", [], resolve), 20));
    const entry = new Entry("y", []);
    const started = performance.now();
    for (let index = 0; index < 200_000; index += 1) {
      wheel.schedule(entry, 30_000);
      wheel.cancel(entry);
    }
    // About 0.2 us each; the bound only catches an algorithm that is not O(1).
    expect(performance.now() - started).toBeLessThan(1_000);
    wheel.stop();
  });
});
