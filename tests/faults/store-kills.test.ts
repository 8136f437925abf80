import type { ObjectStore } from "@trellis/runtime";
import { eventually, startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { dataService } from "./data-contract.ts";
import { count, pause } from "./kit.ts";

const size = 6 * 1024 * 1024;
const honest = new Set([
  "TimeoutError",
  "TransportError",
  "UnavailableError",
  "StoreError",
  "CancelledError",
]);

/** A process has to load and compile its sources on a busy machine, ms. */
const coldStart = 60_000;

/** The byte that the object is full of; throws unless it is all there and all the same. */
async function fillOf(blobs: ObjectStore): Promise<number> {
  for (;;) {
    const entry = await blobs.get("big").orThrow();
    if (entry === undefined) throw new Error("there is no object");
    const bytes = await entry.bytes();
    // It may be replaced while it is read; it is then read again.
    if (bytes.isErr() && bytes.error.type === "StoreError" && bytes.error.reason === "replaced") continue;
    const whole = bytes.orThrow();
    expect(whole.length).toBe(size);
    const [fill = -1] = whole;
    expect(Buffer.from(whole).equals(Buffer.alloc(size, fill))).toBe(true);
    return fill;
  }
}

describe("a put", () => {
  it("whose process is killed at any time leaves the object before it, or the new one, and nothing between", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(dataService, () => undefined);
    const blobs = await service.store.blobs.open().orThrow();
    let confirmed = 0;
    for (let round = 0; round < count(20, 3); round += 1) {
      await using writer = startChild(trellis, "store-writer", String(size));
      await writer.line("done 1", coldStart);
      await pause(Math.random() * 150);
      writer.kill("SIGKILL");
      await writer.exited;
      confirmed = Number(
        writer.lines
          .filter((line) => line.startsWith("done"))
          .at(-1)
          ?.split(" ")[1],
      );
      const fill = await fillOf(blobs);
      expect(fill === confirmed || fill === confirmed + 1, `${fill} after ${confirmed}`).toBe(true);
      const page = await blobs.list().orThrow();
      expect(page.items.map(({ key, size: bytes }) => [key, bytes])).toEqual([["big", size]]);
      expect(page.unreadable).toEqual([]);
    }
  }, 240_000);

  it("under which the broker is killed is done, or fails by type; what was confirmed can be read", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(dataService, () => undefined);
    const blobs = await service.store.blobs.open().orThrow();
    await using writer = startChild(trellis, "store-writer", String(size));
    await writer.line("done 1", coldStart);
    for (let round = 0; round < count(20, 5); round += 1) {
      await pause(50 + Math.random() * 250);
      await trellis.restartNats({ kill: round % 2 === 0 });
    }
    const before = writer.lines.length;
    await eventually(() => writer.lines.slice(before).some((line) => line.startsWith("done")), {
      timeout: 15_000,
    });
    await eventually(async () => (await fillOf(blobs)) >= 1, { timeout: 15_000 });
    writer.tell("stop");
    await writer.line("finished");
    const failed = writer.lines.filter((line) => line.startsWith("failed"));
    expect(failed.map((line) => line.split(" ")[2]).filter((type) => !honest.has(type ?? ""))).toEqual([]);
    const last = writer.lines
      .filter((line) => line.startsWith("done"))
      .at(-1)
      ?.split(" ");
    const fill = await fillOf(blobs);
    expect(fill).toBeGreaterThanOrEqual(Number(last?.[1]) % 256);
    const head = await blobs.head("big").orThrow();
    if (fill === Number(last?.[1]) % 256) expect(head?.digest).toBe(last?.[2]);
  }, 240_000);
});
