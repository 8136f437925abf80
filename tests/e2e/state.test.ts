import { type AnyParticipant, defineApi, defineApp, defineService, rpc, state, use } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const Prefs = Type.Object({ theme: Type.Union([Type.Literal("light"), Type.Literal("dark")]) });
const notes = defineApp("acme.notes", {
  state: { prefs: state({ value: Prefs }), draft: state({ value: Type.Unknown() }) },
});
/** The same app, one representation later. */
const newer = defineApp("acme.notes", {
  state: {
    prefs: state({
      value: Type.Object({ dark: Type.Boolean() }),
      version: 2,
      migrate: { 1: (old) => ({ dark: (old as { theme: string }).theme === "dark" }) },
    }),
  },
});
const other = defineApp("acme.other", { state: { prefs: state({ value: Prefs }) } });
const fleeting = defineApp("acme.fleeting", { state: { prefs: state({ value: Prefs, ttl: "1s" }) } });
const counterApi = defineApi("acme.counter@v1", { rpc: { "Counter.Next": rpc({ output: Type.Integer() }) } });
const counter = defineService("acme.counter", {
  implements: [counterApi],
  state: { count: state({ value: Type.Integer() }) },
});

let trellis: TestTrellis;
beforeAll(async () => {
  trellis = await startTrellis();
});
afterAll(() => trellis.stop());

const connect = <P extends AnyParticipant>(participant: P) => trellis.client(participant);

describe("state of an app", () => {
  it("is put, read, replaced by revision and deleted, and is the same on every connection", async () => {
    const [one, two] = [await connect(notes), await connect(notes)];
    expect(await one.state.prefs.get().orThrow()).toBeUndefined();
    const { revision } = await one.state.prefs.create({ theme: "light" }).orThrow();
    const read = await two.state.prefs.get().orThrow();
    expect(read).toMatchObject({ value: { theme: "light" }, revision, expiresAt: undefined });
    expect(Math.abs((read?.updatedAt.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    const exists = await two.state.prefs.create({ theme: "dark" });
    expect(exists.isErr() && exists.error).toMatchObject({ type: "KVError", reason: "exists", revision });
    const next = await two.state.prefs.replace({ theme: "dark" }, { revision }).orThrow();
    const stale = await one.state.prefs.replace({ theme: "light" }, { revision });
    expect(stale.isErr() && stale.error).toMatchObject({
      type: "KVError",
      reason: "revision_mismatch",
      revision: next.revision,
    });
    const checked = await one.state.prefs.delete({ revision });
    expect(checked.isErr() && checked.error).toMatchObject({ reason: "revision_mismatch" });
    const gone = await one.state.prefs.delete({ revision: next.revision }).orThrow();
    expect(await two.state.prefs.get().orThrow()).toBeUndefined();
    // Revisions never repeat: an old one does not fit a value that came after a deletion.
    const again = await one.state.prefs.put({ theme: "light" }).orThrow();
    expect(again.revision).toBeGreaterThan(gone.revision);
    expect((await two.state.prefs.replace({ theme: "dark" }, { revision })).isErr()).toBe(true);
    await one.state.prefs.delete().orThrow();
  });

  it("loses no update of many at once", async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect(notes)));
    await clients[0]?.state.draft.put(0).orThrow();
    await Promise.all(
      clients.map(async ({ state: { draft } }) => {
        for (let done = 0; done < 10; ) {
          const entry = await draft.get().orThrow();
          if (entry === undefined) throw new Error("it is gone");
          const replaced = await draft.replace(Number(entry.value) + 1, { revision: entry.revision });
          if (replaced.isOk()) done += 1;
          else expect(replaced.error).toMatchObject({ reason: "revision_mismatch" });
        }
      }),
    );
    expect((await clients[0]?.state.draft.get().orThrow())?.value).toBe(40);
  });

  it("belongs to its participant: another one of the same alias has its own", async () => {
    const [one, two] = [await connect(notes), await connect(other)];
    await one.state.prefs.put({ theme: "dark" }).orThrow();
    expect(await two.state.prefs.get().orThrow()).toBeUndefined();
    await two.state.prefs.put({ theme: "light" }).orThrow();
    expect((await one.state.prefs.get().orThrow())?.value).toEqual({ theme: "dark" });
  });

  it("is migrated when it is read, never written back; what is newer is told by name", async () => {
    const old = await connect(notes);
    const { revision } = await old.state.prefs.put({ theme: "dark" }).orThrow();
    const client = await connect(newer);
    expect(await client.state.prefs.get().orThrow()).toMatchObject({ value: { dark: true }, revision });
    await client.state.prefs.put({ dark: false }).orThrow();
    const unknown = await old.state.prefs.get();
    expect(unknown.isErr() && unknown.error).toMatchObject({ type: "KVError", reason: "unknown_version" });
    await old.state.prefs.delete().orThrow();
  });

  it("is validated before it is sent, and takes 64 KiB", async () => {
    const { state: mine } = await connect(notes);
    const wrong = await mine.prefs.put({ theme: "pink" as "dark" });
    expect(wrong.isErr() && wrong.error).toMatchObject({ type: "ValidationError" });
    const large = await mine.draft.put("x".repeat(65_535));
    expect(large.isErr() && large.error).toMatchObject({ type: "ValidationError" });
    const text = `"-é漢\u2028${"x".repeat(60_000)}`;
    await mine.draft.put({ text, zero: -0, deep: [[1.5e300]] }).orThrow();
    const read = await mine.draft.get().orThrow();
    expect(read?.value).toEqual({ text, zero: -0, deep: [[1.5e300]] });
    await mine.draft.delete().orThrow();
  });

  it("goes away after its ttl", async () => {
    const { state: mine } = await connect(fleeting);
    await mine.prefs.put({ theme: "dark" }).orThrow();
    expect((await mine.prefs.get().orThrow())?.expiresAt).toBeInstanceOf(Date);
    await eventually(async () => (await mine.prefs.get().orThrow()) === undefined);
    await mine.prefs.create({ theme: "light" }).orThrow();
  });

  it("outlives a restart of the broker with all of its data", async () => {
    const { state: mine } = await connect(other);
    await mine.prefs.put({ theme: "dark" }).orThrow();
    await trellis.restartNats({ kill: true });
    await eventually(async () => (await mine.prefs.get({ timeout: 2_000 })).isOk(), { timeout: 15_000 });
    expect((await mine.prefs.get().orThrow())?.value).toEqual({ theme: "dark" });
  });
});

describe("state of a service", () => {
  it("is the service's own, also inside its handlers", async () => {
    const service = await trellis.service(counter, ({ handle }) => {
      handle.rpc.counter.next(async ({ client }) => {
        const before = (await client.state.count.get().orThrow())?.value ?? 0;
        await client.state.count.put(before + 1).orThrow();
        return before + 1;
      });
    });
    const caller = await connect(defineApp("acme.counting", { uses: [use(counterApi)] }));
    expect(await caller.rpc.counter.next().orThrow()).toBe(1);
    expect(await caller.rpc.counter.next().orThrow()).toBe(2);
    expect((await service.client.state.count.get().orThrow())?.value).toBe(2);
  });
});
