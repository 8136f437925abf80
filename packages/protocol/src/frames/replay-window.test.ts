import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ReplayWindow } from "./replay-window.ts";

describe("ReplayWindow", () => {
  it("takes each counter once, in any order within its size", () => {
    const window = new ReplayWindow(64);
    expect([5, 3, 4, 5, 3, 68, 4, 5, 6].map((counter) => window.accept(counter))).toEqual([
      true,
      true,
      true,
      false,
      false,
      true,
      false,
      false,
      true,
    ]);
  });

  it("refuses what lags further behind than its size", () => {
    const window = new ReplayWindow(64);
    expect(window.accept(1_000)).toBe(true);
    expect(window.accept(1_000 - 63)).toBe(true);
    expect(window.accept(1_000 - 64)).toBe(false);
  });

  it("refuses what is no counter", () => {
    const window = new ReplayWindow();
    for (const counter of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(window.accept(counter)).toBe(false);
    }
    expect(window.accept(0)).toBe(true);
    expect(window.accept(Number.MAX_SAFE_INTEGER)).toBe(true);
    expect(window.accept(0)).toBe(false);
  });

  it("needs a size", () => {
    expect(() => new ReplayWindow(0)).toThrow(RangeError);
    expect(() => new ReplayWindow(1.5)).toThrow(RangeError);
  });

  it("decides as a set that remembers everything would, for jumps of any width", () => {
    const steps = fc.array(
      fc.oneof(fc.integer({ min: -100, max: 100 }), fc.integer({ min: -5_000, max: 5_000 })),
      {
        maxLength: 400,
      },
    );
    fc.assert(
      fc.property(steps, fc.constantFrom(32, 64, 256), (moves, size) => {
        const window = new ReplayWindow(size);
        const seen = new Set<number>();
        let highest = -1;
        let at = 10_000;
        for (const move of moves) {
          at = Math.max(0, at + move);
          const expected = !seen.has(at) && at > highest - size;
          expect(window.accept(at)).toBe(expected);
          seen.add(at);
          highest = Math.max(highest, at);
        }
      }),
      { numRuns: 300 },
    );
  });
});
