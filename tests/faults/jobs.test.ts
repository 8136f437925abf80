import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { press } from "./children/printer.ts";

const begun = (lines: readonly string[]) => lines.filter((line) => line.startsWith("begun ")).length;

describe("a worker that is told to stop while it has 200 jobs", () => {
  it("settles those that end in time, and hands the others back at once, without a lost attempt", async () => {
    await using trellis = await startTrellis();
    await using first = startChild(trellis, "printer");
    await first.line("ready");
    const maker = await trellis.service(press, () => undefined);
    const short = Array.from({ length: 100 }, () => ({ ms: 1_000 }));
    const long = Array.from({ length: 99 }, () => ({ ms: 60_000 }));
    const made = await maker.jobs.print.createMany([...short, ...long]).orThrow();
    const keyed = await maker.jobs.keyed.create({ ms: 60_000, site: "a" }).orThrow();
    await eventually(() => expect(begun(first.lines)).toBe(200), { timeout: 20_000 });
    first.kill("SIGTERM");
    expect((await first.exited).code).toBe(0);
    const stopped = performance.now();
    const ended = first.lines.filter((line) => line.startsWith("ended ")).length;
    expect(ended).toBeGreaterThanOrEqual(100);
    await using second = startChild(trellis, "printer");
    await second.line("ready");
    // The broker's lease is 30 s: who waits for it would come too late.
    await eventually(() => expect(begun(second.lines)).toBe(200 - ended), { timeout: 15_000 });
    expect(performance.now() - stopped).toBeLessThan(20_000);
    await second.line(`begun ${keyed.id}`);
    for (const ref of made.slice(0, 100))
      expect((await ref.orThrow().get().orThrow()).state).toBe("completed");
    const back = await made[150]?.orThrow().get().orThrow();
    expect(back).toMatchObject({ state: "active", tries: 1 });
    expect(back?.lastError).toBeUndefined();
    second.kill("SIGKILL");
    await second.exited;
  });
});

describe("jobs of a worker and a broker that are killed", () => {
  it("end exactly once each", async () => {
    await using trellis = await startTrellis();
    await using first = startChild(trellis, "printer");
    await using second = startChild(trellis, "printer");
    await Promise.all([first.line("ready"), second.line("ready")]);
    const maker = await trellis.service(press, () => undefined);
    const pages = Array.from({ length: 300 }, (_, index) => ({ ms: index % 7 }));
    const half = await maker.jobs.print.createMany(pages.slice(0, 150)).orThrow();
    await trellis.restartNats({ kill: true });
    first.kill("SIGKILL");
    await first.exited;
    const rest = await maker.jobs.print.createMany(pages.slice(150)).orThrow();
    const refs = [...half, ...rest].map((ref) => ref.orThrow());
    const ends = await Promise.all(refs.map((ref) => ref.wait({ timeout: "60s" }).orThrow()));
    expect(ends.filter(({ state }) => state !== "completed")).toEqual([]);
  }, 120_000);
});
