import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeyOrder } from "./key-order.ts";

interface Item {
  readonly key: string | undefined;
  readonly n: number;
}

describe("the order of keys", () => {
  it("gives every item once, those of one key in order and one at a time", () => {
    const step = fc.oneof(
      fc.record({ add: fc.option(fc.constantFrom("a", "b", "c"), { nil: undefined }) }),
      fc.constant("take"),
      fc.record({ end: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const order = new KeyOrder<Item>();
        const running: Item[] = [];
        const last = new Map<string, number>();
        let added = 0;
        let taken = 0;
        const take = () => {
          const item = order.take();
          if (item === undefined) return false;
          taken += 1;
          const { key, n } = item;
          if (key !== undefined) {
            expect(running.some((other) => other.key === key)).toBe(false);
            expect(n).toBeGreaterThan(last.get(key) ?? -1);
            last.set(key, n);
          }
          running.push(item);
          return true;
        };
        const end = (at: number) => {
          const [item] = running.splice(at % Math.max(1, running.length), 1);
          if (item !== undefined) order.release(item.key);
        };
        for (const each of steps) {
          if (each === "take") take();
          else if (typeof each === "object" && "end" in each) end(each.end);
          else if (typeof each === "object") order.add({ key: each.add, n: added++ }, each.add);
          expect(order.size).toBe(added - taken);
        }
        while (take() || running.length > 0) end(0);
        expect(taken).toBe(added);
      }),
    );
  });

  it("forgets keys that nobody uses, and gives back what waits", () => {
    const order = new KeyOrder<number>();
    for (let n = 0; n < 5; n += 1) order.add(n, n < 3 ? "k" : undefined);
    expect(order.take()).toBe(0);
    order.resume(0);
    expect(order.drain().sort((a, b) => (a < b ? -1 : 1))).toEqual([0, 1, 2, 3, 4]);
    expect(order.size).toBe(0);
  });
});
