import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { afterTick, inTurn, turnsIdle } from "./tick.ts";

/** More than one turn's share: each such frame has a turn of its own. */
const large = 100_000;

describe("turns", () => {
  it("works on frames in order, in turns of their own, and sends before it goes on", async () => {
    const seen: string[] = [];
    for (const name of ["a", "b", "c"]) {
      inTurn(large, () => {
        seen.push(name);
        afterTick(() => seen.push(`${name} sent`));
      });
    }
    expect(seen).toEqual(["a"]);
    await turnsIdle();
    await turn();
    expect(seen).toEqual(["a", "a sent", "b", "b sent", "c", "c sent"]);
  });

  it("goes on in order past many compactions, and ends when nothing is left", async () => {
    let done = 0;
    let open = true;
    const keepBusy = () => {
      done += 1;
      if (open) inTurn(large, keepBusy);
    };
    // Two at a time: the queue is never empty.
    inTurn(large, keepBusy);
    inTurn(large, keepBusy);
    await expect.poll(() => done, { timeout: 5_000 }).toBeGreaterThan(2_000);
    open = false;
    await turnsIdle();
    const ended = done;
    await turn();
    expect(done).toBe(ended);
  });
});
