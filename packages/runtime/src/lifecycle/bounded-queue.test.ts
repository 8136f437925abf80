import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { BoundedQueue, QueueOverflowError } from "./bounded-queue.ts";

async function drain<T>(queue: BoundedQueue<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

describe("BoundedQueue", () => {
  test("hands over in order, to readers that wait too, and ends", async () => {
    const queue = new BoundedQueue<number>({ capacity: 10, overflow: "reject" });
    const parked = [queue.next(), queue.next()];
    for (const item of [1, 2, 3, 4]) expect(queue.push(item)).toBe(true);
    queue.end();
    expect(await Promise.all(parked)).toEqual([
      { done: false, value: 1 },
      { done: false, value: 2 },
    ]);
    expect(await drain(queue)).toEqual([3, 4]);
    expect(queue.push(5)).toBe(false);
  });

  test("reject refuses, drop-oldest drops, fail fails after what waits", async () => {
    const rejecting = new BoundedQueue<number>({ capacity: 2, overflow: "reject" });
    expect([1, 2, 3].map((item) => rejecting.push(item))).toEqual([true, true, false]);

    const lost: number[] = [];
    const dropping = new BoundedQueue<number>({
      capacity: 2,
      overflow: "drop-oldest",
      onDrop: (item) => lost.push(item),
    });
    for (let item = 0; item < 1_000; item += 1) dropping.push(item);
    dropping.end();
    expect([dropping.dropped, lost.length, await drain(dropping)]).toEqual([998, 998, [998, 999]]);

    const failing = new BoundedQueue<number>({ capacity: 2, overflow: "fail" });
    for (const item of [1, 2, 3]) failing.push(item);
    expect(failing.open).toBe(false);
    expect([(await failing.next()).value, (await failing.next()).value]).toEqual([1, 2]);
    await expect(failing.next()).rejects.toThrow(QueueOverflowError);
    expect(await failing.next()).toEqual({ done: true, value: undefined });
  });

  test("return frees everything and interrupts a parked next", async () => {
    let closed = 0;
    const controller = new AbortController();
    const queue = new BoundedQueue<number>({
      capacity: 2,
      overflow: "reject",
      signal: controller.signal,
      onClose: () => {
        closed += 1;
      },
    });
    const parked = queue.next();
    await queue.return();
    await queue.return();
    expect(await parked).toEqual({ done: true, value: undefined });
    expect([closed, queue.size, queue.push(1)]).toEqual([1, 0, false]);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  test("break in for await closes the source", async () => {
    let closed = false;
    const queue = new BoundedQueue<number>({
      capacity: 5,
      overflow: "reject",
      onClose: () => void (closed = true),
    });
    for (const item of [1, 2, 3]) queue.push(item);
    for await (const item of queue) if (item === 2) break;
    expect([closed, queue.size]).toEqual([true, 0]);
  });

  test("fail reaches one parked next, the others are done", async () => {
    const queue = new BoundedQueue<number>({ capacity: 1, overflow: "reject" });
    const parked = [queue.next(), queue.next()];
    queue.fail(new Error("lost"));
    const settled = await Promise.allSettled(parked);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  });

  test("the signal ends it at once, also when it had ended with items waiting", async () => {
    const controller = new AbortController();
    const options = { capacity: 5, overflow: "reject", signal: controller.signal } as const;
    const open = new BoundedQueue<number>(options);
    const ended = new BoundedQueue<number>(options);
    const drained = new BoundedQueue<number>(options);
    for (const queue of [open, ended, drained]) queue.push(1);
    ended.end();
    drained.end();
    expect(await drain(drained)).toEqual([1]);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(2);
    controller.abort(new Error("stopped"));
    for (const queue of [open, ended]) {
      expect(queue.size).toBe(0);
      await expect(queue.next()).rejects.toThrow("stopped");
    }
    await expect(new BoundedQueue<number>(options).next()).rejects.toThrow("stopped");
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  test("a long run stays bounded and in order", async () => {
    const queue = new BoundedQueue<number>({ capacity: 7, overflow: "reject" });
    let pushed = 0;
    let read = 0;
    while (read < 10_000) {
      while (queue.push(pushed)) pushed += 1;
      expect(queue.size).toBe(7);
      for (let count = 0; count < (read % 7) + 1; count += 1) expect((await queue.next()).value).toBe(read++);
    }
  });
});
