import { FakeClock } from "@trellis/testing";
import { describe, expect, test } from "vitest";
import { Deadline } from "./deadline.ts";
import { deferred } from "./deferred.ts";
import { Scope, ScopeClosedError } from "./scope.ts";

describe("Scope", () => {
  test("closes last in first out, runs all, collects errors", async () => {
    const order: string[] = [];
    const fault = new Error("fault");
    const scope = new Scope();
    scope.add("a", () => void order.push("a"));
    scope.add("b", async () => {
      order.push("b");
      throw fault;
    });
    scope.add("c", async () => {
      await Promise.resolve();
      order.push("c");
    });
    const closing = scope.close();
    expect(scope.close()).toBe(closing);
    expect(await closing).toEqual([{ name: "b", error: fault, abandoned: false }]);
    expect(order).toEqual(["c", "b", "a"]);
    await scope.close();
    expect(order).toHaveLength(3);
  });

  test("what was taken out is not closed", async () => {
    const order: string[] = [];
    const scope = new Scope();
    const remove = scope.add("a", () => void order.push("a"));
    scope.add("b", () => void order.push("b"));
    remove();
    remove();
    await scope.close();
    expect(order).toEqual(["b"]);
  });

  test("a resource that arrives after close is closed at once, and the start learns of it", async () => {
    const scope = new Scope({ name: "service" });
    await scope.close();
    let closed = 0;
    expect(() => scope.add("connection", () => void (closed += 1))).toThrow(ScopeClosedError);
    await scope.close();
    expect(closed).toBe(1);
    expect(() => scope.throwIfClosed("next step")).toThrow('service was closed before "next step" was ready');
  });

  test("close from within a closer does not deadlock the scope", async () => {
    const scope = new Scope();
    let again: Promise<unknown> | undefined;
    scope.add("a", () => {
      again = scope.close();
    });
    await scope.close();
    await again;
  });

  test("a deadline bounds the whole, late closers are reported and the others still run", async () => {
    const clock = new FakeClock();
    const order: string[] = [];
    const scope = new Scope({ timers: clock });
    scope.add("first", (deadline) => void order.push(`first ${deadline.remaining()}`));
    scope.add("stuck", () => new Promise(() => undefined));
    const late = deferred();
    scope.add("late", () => late.promise);
    const closing = scope.close(Deadline.after(1_000, clock));
    for (let turn = 0; turn < 20; turn += 1) {
      await Promise.resolve();
      clock.advance(100);
    }
    const failures = await closing;
    expect(failures.map(({ name, abandoned }) => [name, abandoned])).toEqual([
      ["late", true],
      ["stuck", true],
    ]);
    expect(order).toEqual(["first 0"]);
    late.reject(new Error("nobody waits for this any more"));
    expect(clock.timers).toBe(0);
  });

  test("await using throws what failed", async () => {
    const run = async () => {
      await using scope = new Scope();
      scope.add("a", () => Promise.reject(new Error("fault")));
    };
    await expect(run()).rejects.toThrow("closing failed: a");
  });
});
