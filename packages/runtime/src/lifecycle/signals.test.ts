import { getEventListeners } from "node:events";
import { FakeClock } from "@trellis/testing";
import { describe, expect, test } from "vitest";
import { backoffDelay, sleep } from "./backoff.ts";
import { Deadline } from "./deadline.ts";
import { deadlineSignal, LazySignal, linkSignals } from "./signals.ts";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("linkSignals", () => {
  test("aborts with the first reason and lets go of the others", () => {
    const [a, b] = [new AbortController(), new AbortController()];
    const linked = linkSignals(a.signal, undefined, b.signal);
    b.abort("why");
    a.abort("too late");
    expect(linked.signal.reason).toBe("why");
    expect([listeners(a.signal), listeners(b.signal)]).toEqual([0, 0]);
  });

  test("an aborted source aborts at once; unlink leaves no listener", () => {
    expect(linkSignals(AbortSignal.abort("was")).signal.reason).toBe("was");
    const source = new AbortController();
    for (let call = 0; call < 1_000; call += 1) linkSignals(source.signal).unlink();
    expect(listeners(source.signal)).toBe(0);
  });
});

describe("deadlineSignal", () => {
  test("aborts at the deadline with the given reason", () => {
    const clock = new FakeClock();
    const reason = () => "late";
    const { signal } = deadlineSignal(Deadline.after(100, clock), { reason, timers: clock });
    clock.advance(99);
    expect(signal.aborted).toBe(false);
    clock.advance(1);
    expect(signal.reason).toBe("late");
    expect(deadlineSignal(Deadline.after(0, clock)).signal.reason).toHaveProperty("name", "TimeoutError");
  });

  test("unlink and a parent's abort clear the timer", () => {
    const clock = new FakeClock();
    const parent = new AbortController();
    deadlineSignal(Deadline.after(100, clock), { signal: parent.signal, timers: clock }).unlink();
    expect([clock.timers, listeners(parent.signal)]).toEqual([0, 0]);
    const { signal } = deadlineSignal(Deadline.after(100, clock), { signal: parent.signal, timers: clock });
    parent.abort("stop");
    expect([clock.timers, signal.reason]).toEqual([0, "stop"]);
  });
});

test("LazySignal gives the same signal, before and after the abort", () => {
  const lazy = new LazySignal();
  const { signal } = lazy;
  lazy.abort("why");
  lazy.abort("again");
  expect([lazy.signal === signal, signal.reason, lazy.reason]).toEqual([true, "why", "why"]);
  const late = new LazySignal();
  late.abort();
  expect(late.signal.reason).toHaveProperty("name", "AbortError");
});

describe("Deadline", () => {
  test("remaining falls to zero and ignores the wall clock", () => {
    const clock = new FakeClock();
    const deadline = Deadline.after(1_000, clock);
    clock.setWallClock(0);
    clock.advance(400);
    expect([deadline.remaining(), deadline.within(100).remaining(), deadline.within(9_000)]).toEqual([
      600,
      100,
      deadline,
    ]);
    clock.advance(700);
    expect([deadline.remaining(), deadline.expired]).toEqual([0, true]);
    expect([Deadline.never().remaining(), Deadline.never().expired]).toEqual([
      Number.POSITIVE_INFINITY,
      false,
    ]);
  });
});

describe("backoff", () => {
  test("grows, is bounded, jitters downwards", () => {
    const options = { initial: 100, max: 1_000, random: () => 0 };
    expect([1, 2, 3, 4, 5, 5_000].map((attempt) => backoffDelay(attempt, options))).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ]);
    expect(backoffDelay(1, { ...options, random: () => 0.999_999 })).toBeCloseTo(50, 2);
  });

  test("sleep ends early with the signal's reason and leaves nothing", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const sleeping = sleep(1_000, { signal: controller.signal, timers: clock });
    controller.abort("why");
    await expect(sleeping).rejects.toBe("why");
    await expect(sleep(1, { signal: controller.signal })).rejects.toBe("why");
    const other = new AbortController();
    const done = sleep(1_000, { signal: other.signal, timers: clock });
    clock.advance(1_000);
    await done;
    expect([clock.timers, listeners(other.signal), listeners(controller.signal)]).toEqual([0, 0, 0]);
  });
});
