import { defineService, store } from "@trellis/contract";
import { type StoreBinding, storeMetaPrefix } from "@trellis/protocol";
import type { ObjectStore } from "@trellis/runtime";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacker } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import { management, openTo, permissionsAbout, resourcesOf, telling } from "./resource-ways.ts";
import { startScene } from "./scene.ts";

const bank = defineService("acme.archive", { store: { papers: store({ maxObject: "4MiB" }) } });
const neighbour = defineService("evil.archive", { store: { papers: store({}) } });

let trellis: TestTrellis;
let papers: ObjectStore;
let owner: Attacker;
let intruder: Attacker;
let victim: StoreBinding;
let own: StoreBinding;

function bindingOf({ answer }: Attacker): StoreBinding {
  const binding = resourcesOf(answer).store["papers"];
  if (binding === undefined) throw new Error("the store is not bound");
  return binding;
}

const bytes = new Uint8Array(600_000).fill(7);

beforeAll(async () => {
  trellis = await startScene();
  const service = await trellis.service(bank, () => undefined);
  papers = await service.store.papers.open().orThrow();
  await papers.put("deed", bytes).orThrow();
  owner = await Attacker.join(trellis, bank);
  intruder = await Attacker.join(trellis, neighbour);
  [victim, own] = [bindingOf(owner), bindingOf(intruder)];
});
afterAll(async () => {
  await Promise.all([owner, intruder].map((attacker) => attacker?.close()));
  await trellis?.stop();
});

async function isWhole(): Promise<boolean> {
  const entry = await papers.get("deed").orThrow();
  return entry !== undefined && Buffer.from(bytes).equals(await entry.bytes().orThrow());
}

describe("a store under exact permissions", () => {
  it("does all of its work, replacing and deleting and waiting too", async () => {
    const waiting = papers.waitFor("late", { timeout: 10_000 });
    await papers.create("late", bytes).orThrow();
    expect((await waiting.orThrow()).size).toBe(bytes.length);
    await papers.put("late", bytes.subarray(1)).orThrow();
    expect((await papers.head("late").orThrow())?.size).toBe(bytes.length - 1);
    expect((await papers.list().orThrow()).items.map(({ key }) => key)).toEqual(["deed", "late"]);
    expect(await papers.delete("late").orThrow()).toBe(true);
    expect(await isWhole()).toBe(true);
  });

  it("is allowed by exactly these", async () => {
    const { connection } = owner.answer;
    const { name } = victim;
    expect(await permissionsAbout(trellis, { connection, name })).toEqual({
      pub: [
        `$JS.API.DIRECT.GET.OBJ_${name}`,
        `$JS.API.DIRECT.GET.OBJ_${name}.>`,
        `$JS.API.STREAM.INFO.OBJ_${name}`,
        `$JS.API.STREAM.PURGE.OBJ_${name}`,
        `$O.${name}.C.>`,
        `$O.${name}.M.>`,
      ].sort(),
      sub: [`${victim.watch}.>`],
    });
  });

  it("cannot be rebuilt or looked through by consumers, not even by its owner", async () => {
    expect(await openTo(owner.nats, [...management(`OBJ_${victim.name}`), ...telling])).toEqual([]);
  });
});

describe("the store of a neighbour", () => {
  it("cannot be written, read, emptied or managed", async () => {
    const stream = `OBJ_${victim.name}`;
    const ways = [
      `$O.${victim.name}.C.x`,
      `$O.${victim.name}.M.x`,
      `$O.${victim.name}.>`,
      `${storeMetaPrefix(victim.name)}.ZGVlZA==`,
      "$O.*.M.x",
      `$JS.API.DIRECT.GET.${stream}`,
      `$JS.API.DIRECT.GET.${stream}.$O.${victim.name}.M.x`,
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.PURGE.${stream}`,
      ...management(stream),
    ];
    expect(await openTo(intruder.nats, ways)).toEqual([]);
    expect(await isWhole()).toBe(true);
  });

  it("cannot be watched", async () => {
    const open: string[] = [];
    for (const subject of [`${victim.watch}.>`, `$O.${victim.name}.>`, "$O.>", "objw.>"])
      if (await maySubscribe(intruder.nats, subject)) open.push(subject);
    expect(open).toEqual([]);
    expect(await maySubscribe(intruder.nats, `${own.watch}.>`)).toBe(true);
  });

  it("is called what only its bindings say, and no guess in a reply subject reaches it", async () => {
    expect(victim.name).toMatch(/^[0-9a-f]{32}_papers$/);
    expect(JSON.stringify(intruder.answer)).not.toContain(victim.name.slice(0, 32));
    // A description with a roll-up header in the intruder's own store, to be delivered where it could empty another.
    await intruder.nats.request(`$O.${own.name}.M.x`, "{}");
    const get = `$JS.API.DIRECT.GET.OBJ_${own.name}.$O.${own.name}.M.x`;
    for (const reply of ["$O.*.M.x", "$O.>", `$O.${"0".repeat(32)}_papers.M.x`])
      await mayPublish(intruder.nats, get, { reply });
    await mayPublish(intruder.nats, `$JS.API.STREAM.PURGE.OBJ_${own.name}`, { reply: "$O.*.M.x" });
    expect(await isWhole()).toBe(true);
  });
});
