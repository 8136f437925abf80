import { describe, expect, it } from "vitest";
import { onAbort } from "./on-abort.ts";

function counted(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    count += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    count -= 1;
    remove(...args);
  };
  return { controller, listeners: () => count };
}

describe("onAbort", () => {
  it("has one listener for any number of callbacks, and none after the last has gone", () => {
    const { controller, listeners } = counted();
    const stops = Array.from({ length: 100 }, () => onAbort(controller.signal, () => {}));
    expect(listeners()).toBe(1);
    for (const stop of stops) stop();
    expect(listeners()).toBe(0);
    onAbort(controller.signal, () => {})();
    expect(listeners()).toBe(0);
  });

  it("tells each that still waits, once, with the reason", () => {
    const { controller } = counted();
    const told: unknown[] = [];
    onAbort(controller.signal, (reason) => told.push(["a", reason]));
    const stop = onAbort(controller.signal, (reason) => told.push(["b", reason]));
    const stopLast = onAbort(controller.signal, () => told.push("last"));
    onAbort(controller.signal, () => stopLast());
    stop();
    stop();
    controller.abort("because");
    controller.abort("again");
    expect(told[0]).toEqual(["a", "because"]);
    expect(told).not.toContainEqual(["b", "because"]);
    stopLast();
  });

  it("does not tell one that stops waiting while others are told", () => {
    const controller = new AbortController();
    const told: string[] = [];
    let stop = () => {};
    onAbort(controller.signal, () => stop());
    stop = onAbort(controller.signal, () => told.push("late"));
    controller.abort();
    expect(told).toEqual([]);
  });
});
