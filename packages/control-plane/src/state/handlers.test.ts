import { canonicalJson, defineApp, state } from "@trellis/contract";
import { MAX_STATE_BYTES } from "@trellis/runtime/node";
import { FakeClock } from "@trellis/testing";
import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { Catalog } from "../authority/catalog.ts";
import { resolveConfig } from "../config/config.ts";
import { insertParticipant } from "../storage/participants.ts";
import { findState, saveState } from "../storage/state.ts";
import { Storage } from "../storage/storage.ts";
import { stateHandlers } from "./handlers.ts";

const app = defineApp("acme.notes", {
  state: { prefs: state({ value: Type.Unknown() }), code: state({ value: Type.Unknown(), ttl: "10m" }) },
});
const principal = { kind: "user", id: "ada" };
const participant = { id: app.id, digest: app.digest };

async function open() {
  const storage = await Storage.open(":memory:");
  const clock = new FakeClock();
  await insertParticipant(storage.queries, {
    id: app.id,
    revision: 1,
    digest: app.digest,
    kind: "app",
    artifact: canonicalJson(app.artifact),
    owner: null,
    installedAt: 1,
  });
  const config = resolveConfig({ dataDir: ".", clock });
  const plane = { storage, catalog: new Catalog(), config };
  const as = (caller: Parameters<typeof stateHandlers>[0]["caller"]) => stateHandlers({ plane, caller });
  return { storage, clock, as, ada: as({ principal, participant }) };
}

const put = (value: string, write = value.padEnd(8, "."), rest: { expected?: number } = {}) => ({
  alias: "prefs",
  value,
  version: 1,
  write,
  ...rest,
});

describe("the state API", () => {
  it("keeps each principal's own, by participant, and nothing that a caller could name", async () => {
    const { as, ada } = await open();
    await ada["State.Put"](put("1"));
    const others = [
      { principal: { kind: "user", id: "bo" }, participant },
      { principal: { kind: "app", id: "ada" }, participant },
    ];
    for (const other of others)
      expect((await as(other)["State.Get"]({ alias: "prefs" })).orThrow()).toEqual({});
    expect((await ada["State.Get"]({ alias: "prefs" })).orThrow().entry).toMatchObject({ value: "1" });
  });

  it("knows only what the caller's revision declares", async () => {
    const { as, ada } = await open();
    const undeclared = { alias: "constructor" };
    expect((await ada["State.Get"](undeclared)).isErr()).toBe(true);
    expect((await ada["State.Put"]({ ...put("1"), alias: "other" })).isErr()).toBe(true);
    expect((await ada["State.Delete"]({ alias: "other", write: "12345678" })).isErr()).toBe(true);
    const unknown = as({ principal, participant: { id: app.id, digest: "other" } });
    expect((await unknown["State.Get"]({ alias: "prefs" })).isErr()).toBe(true);
  });

  it("does a write that comes twice once, and says the same of it", async () => {
    const { ada } = await open();
    const first = (await ada["State.Put"](put("1", "write-one", { expected: 0 }))).orThrow();
    expect((await ada["State.Put"](put("1", "write-one", { expected: 0 }))).orThrow()).toEqual(first);
    expect((await ada["State.Put"](put("2", "write-two", { expected: 0 }))).isErr()).toBe(true);
    const gone = { alias: "prefs", write: "write-three", expected: first.revision };
    const deleted = (await ada["State.Delete"](gone)).orThrow();
    expect((await ada["State.Delete"](gone)).orThrow()).toEqual(deleted);
  });

  it("lets one of many conditional writes at once through", async () => {
    const { ada } = await open();
    const writes = Array.from({ length: 20 }, (_, n) =>
      ada["State.Put"](put(`${n}`, `write-no-${n}`, { expected: 0 })),
    );
    const results = await Promise.all(writes);
    expect(results.filter((result) => result.isOk())).toHaveLength(1);
  });

  it("refuses what is not JSON, what is too large, and what would poison a prototype", async () => {
    const { ada } = await open();
    const fits = `"${"x".repeat(MAX_STATE_BYTES - 2)}"`;
    expect((await ada["State.Put"](put(fits, "write-fits"))).isOk()).toBe(true);
    const wrong = [
      "",
      "{",
      `"${"é".repeat(MAX_STATE_BYTES / 2)}"`,
      '{"__proto__":{"admin":true}}',
      '"\\ud800"',
    ];
    for (const [n, value] of wrong.entries())
      expect((await ada["State.Put"](put(value, `write-no-${n}`))).isErr(), value.slice(0, 20)).toBe(true);
    expect((await ada["State.Get"]({ alias: "prefs" })).orThrow().entry?.value).toBe(fits);
  });

  it("forgets what has expired, and never gives a revision twice", async () => {
    const { ada, clock } = await open();
    const code = (write: string, expected?: number) => ({
      ...put('"1234"', write),
      alias: "code",
      ...(expected === undefined ? {} : { expected }),
    });
    const first = (await ada["State.Put"](code("write-one", 0))).orThrow();
    clock.advance(9 * 60_000);
    expect((await ada["State.Get"]({ alias: "code" })).orThrow().entry).toBeDefined();
    clock.advance(60_000);
    expect((await ada["State.Get"]({ alias: "code" })).orThrow()).toEqual({});
    expect((await ada["State.Put"](code("write-two", first.revision))).isErr()).toBe(true);
    const second = (await ada["State.Put"](code("write-three", 0))).orThrow();
    expect(second.revision).toBeGreaterThan(first.revision);
  });

  it("writes a row only over the one that was read", async () => {
    const { storage } = await open();
    const key = { principal: "user ada", participantId: app.id, alias: "prefs" };
    const row = { ...key, value: "1", version: 1, write: "w", updatedAt: 1, expiresAt: null };
    expect(await saveState(storage.queries, { ...row, revision: 1 })).toBe(true);
    expect(await saveState(storage.queries, { ...row, revision: 1 })).toBe(false);
    expect(await saveState(storage.queries, { ...row, revision: 3 })).toBe(false);
    expect(await saveState(storage.queries, { ...row, revision: 2, value: "2" })).toBe(true);
    expect(await findState(storage.queries, key)).toMatchObject({ value: "2", revision: 2 });
  });
});
