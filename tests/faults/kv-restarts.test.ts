import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { dataService } from "./data-contract.ts";
import { count, heap, pause } from "./kit.ts";

/** What a put may end with when its broker goes away. */
const honest = new Set(["TimeoutError", "TransportError", "UnavailableError", "KVError", "CancelledError"]);

/** A process has to load and compile its sources on a busy machine, ms. */
const coldStart = 60_000;

describe("a broker that is killed under writes", () => {
  it("keeps what was confirmed; a watch has the newest of every key; each failure has a type", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(dataService, () => undefined);
    const { counters } = service.kv;
    const seen = new Map<string, number[]>();
    const watch = counters.watch();
    const watching = (async () => {
      for await (const change of watch) {
        if (change.kind !== "value") continue;
        const revisions = seen.get(change.key);
        if (revisions === undefined) seen.set(change.key, [change.revision]);
        else revisions.push(change.revision);
      }
    })();
    await using writer = startChild(trellis, "kv-writer");
    await writer.line("ready", coldStart);
    for (let round = 0; round < count(30, 6); round += 1) {
      await pause(100 + Math.random() * 300);
      await trellis.restartNats({ kill: round % 2 === 0 });
    }
    const before = writer.lines.length;
    await eventually(() => writer.lines.slice(before).filter((line) => line.startsWith("done")).length > 24, {
      timeout: 15_000,
    });
    writer.tell("stop");
    await writer.line("finished");
    const failed = writer.lines.filter((line) => line.startsWith("failed"));
    expect(failed.map((line) => line.split(" ")[3]).filter((type) => !honest.has(type ?? ""))).toEqual([]);
    for (let at = 0; at < 12; at += 1) {
      const key = `k${at}`;
      const entry = await counters.get(key).orThrow();
      const confirmed = writer.lines
        .filter((line) => line.startsWith(`done ${key} `))
        .at(-1)
        ?.split(" ");
      expect(entry?.revision).toBeGreaterThanOrEqual(Number(confirmed?.[3]));
      expect(entry?.value.n).toBeGreaterThanOrEqual(Number(confirmed?.[2]));
      await eventually(() => expect(seen.get(key)?.at(-1)).toBe(entry?.revision), { timeout: 15_000 });
      const revisions = seen.get(key) ?? [];
      expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
      expect(new Set(revisions).size).toBe(revisions.length);
    }
    watch.stop();
    await watching;
  }, 120_000);

  it("leaves no consumer behind, however often a watch came back", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(dataService, () => undefined);
    const watch = service.kv.counters.watch()[Symbol.asyncIterator]();
    expect((await watch.next()).value).toEqual({ kind: "ready" });
    for (let round = 1; round <= 3; round += 1) {
      await trellis.restartNats({ kill: true });
      await eventually(async () =>
        (await service.kv.counters.put("a", { n: round }, { timeout: 1_000 })).isOk(),
      );
      await eventually(async () => {
        const { value } = await watch.next();
        return value?.kind === "value" && value.value.n === round;
      });
    }
    const { app } = trellis.controlPlane.plane.links;
    const answer = await eventually(() => app.request("$JS.API.INFO", "", { timeout: 1_000 }));
    expect(answer.json<{ consumers: number }>().consumers).toBe(0);
    await watch.return?.();
  }, 120_000);

  it("whose writer is killed has at most one write more than it confirmed, and the next writer goes on", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(dataService, () => undefined);
    for (let round = 0; round < count(5, 2); round += 1) {
      await using writer = startChild(trellis, "kv-writer");
      await writer.line("done k3 20", coldStart);
      writer.kill("SIGKILL");
      await writer.exited;
      const last = writer.lines
        .filter((line) => line.startsWith("done k3 "))
        .at(-1)
        ?.split(" ")[2];
      const entry = await service.kv.counters.get("k3").orThrow();
      expect((entry?.value.n ?? 0) - Number(last)).toBeGreaterThanOrEqual(0);
      // One under way, and one whose line was not written any more.
      expect((entry?.value.n ?? 0) - Number(last)).toBeLessThanOrEqual(2);
    }
  }, 120_000);
});

describe("a watch that nobody reads", () => {
  it("keeps no more than a page of changes, and has the newest in the end", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(dataService, () => undefined);
    const { counters } = service.kv;
    const watch = counters.watch()[Symbol.asyncIterator]();
    expect((await watch.next()).value).toEqual({ kind: "ready" });
    const write = async (from: number, to: number) => {
      for (let n = from; n < to; n += 100)
        await Promise.all(
          Array.from({ length: 100 }, (_, at) => counters.put(`k${n + at}`, { n: n + at }).orThrow()),
        );
    };
    await write(0, 5_000);
    const small = await heap();
    await write(5_000, 25_000);
    expect((await heap()) - small).toBeLessThan(12_000_000);
    let newest = 0;
    while (newest < 24_999) {
      const { value } = await watch.next();
      if (value?.kind === "value") newest = Math.max(newest, value.value.n);
    }
    await watch.return?.();
  }, 90_000);
});
