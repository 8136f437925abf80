import { headers } from "@nats-io/transport-node";
import { defineService, kv } from "@trellis/contract";
import type { KvBinding } from "@trellis/protocol";
import type { ConnectedService } from "@trellis/runtime/service";
import { eventually, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacker } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import { management, openTo, permissionsAbout, resourcesOf, telling } from "./resource-ways.ts";
import { startScene } from "./scene.ts";

const value = Type.Object({ n: Type.Integer() });
const bank = defineService("acme.bank", { kv: { accounts: kv({ value, history: 3 }) } });
/** A neighbour with a bucket of its own, and so with all that buckets may do. */
const neighbour = defineService("evil.bank", { kv: { accounts: kv({ value }) } });

let trellis: TestTrellis;
let service: ConnectedService<typeof bank>;
let owner: Attacker;
let intruder: Attacker;
let victim: KvBinding;
let own: KvBinding;

function bindingOf({ answer }: Attacker): KvBinding {
  const binding = resourcesOf(answer).kv["accounts"];
  if (binding === undefined) throw new Error("the bucket is not bound");
  return binding;
}

beforeAll(async () => {
  trellis = await startScene();
  service = await trellis.service(bank, () => undefined);
  await service.kv.accounts.put("ada", { n: 1 }).orThrow();
  owner = await Attacker.join(trellis, bank);
  intruder = await Attacker.join(trellis, neighbour);
  [victim, own] = [bindingOf(owner), bindingOf(intruder)];
});
afterAll(async () => {
  await Promise.all([owner, intruder].map((attacker) => attacker?.close()));
  await trellis?.stop();
});

describe("a bucket under exact permissions", () => {
  it("does all of its work", async () => {
    const { accounts } = service.kv;
    const watch = accounts.watch({ key: "bo" })[Symbol.asyncIterator]();
    expect((await watch.next()).value).toEqual({ kind: "ready" });
    await accounts.create("bo", { n: 1 }).orThrow();
    const { revision } = await accounts.put("bo", { n: 2 }).orThrow();
    await accounts.replace("bo", { n: 3 }, { revision }).orThrow();
    expect(await accounts.history("bo").orThrow()).toHaveLength(3);
    expect(await accounts.keys().collect().orThrow()).toEqual(expect.arrayContaining(["ada", "bo"]));
    await accounts.delete("bo").orThrow();
    const kinds: string[] = [];
    while (!kinds.includes("deleted")) kinds.push((await watch.next()).value?.kind ?? "end");
    expect(kinds).not.toContain("end");
    await watch.return?.();
  });

  it("is allowed by exactly these", async () => {
    const { connection } = owner.answer;
    const { bucket } = victim;
    expect(await permissionsAbout(trellis, { connection, name: bucket })).toEqual({
      pub: [`$JS.API.DIRECT.GET.KV_${bucket}`, `$JS.API.DIRECT.GET.KV_${bucket}.>`, `$KV.${bucket}.>`].sort(),
      sub: [`${victim.watch}.>`],
    });
  });

  it("cannot be purged, rebuilt or looked through, not even by its owner", async () => {
    const stream = `KV_${victim.bucket}`;
    const purge = [`$JS.API.STREAM.PURGE.${stream}`, `$JS.API.STREAM.INFO.${stream}`];
    expect(await openTo(owner.nats, [...management(stream), ...purge, ...telling])).toEqual([]);
  });

  it("takes no roll-up: nothing that is stored empties it", async () => {
    for (const scope of ["all", "sub"]) {
      const header = headers();
      header.set("Nats-Rollup", scope);
      const answer = await owner.nats.request(`$KV.${victim.bucket}.x`, "{}", {
        headers: header,
        timeout: 5_000,
      });
      expect(answer.json<{ error?: { err_code: number } }>().error?.err_code).toBe(10111);
    }
    expect((await service.kv.accounts.get("ada").orThrow())?.value).toEqual({ n: 1 });
  });
});

describe("the bucket of a neighbour", () => {
  it("cannot be written, read, emptied or managed", async () => {
    const stream = `KV_${victim.bucket}`;
    const ways = [
      `$KV.${victim.bucket}.YWRh`,
      `$KV.${victim.bucket}.ada`,
      `$KV.${victim.bucket}.>`,
      "$KV.*.ada",
      `$JS.API.DIRECT.GET.${stream}`,
      `$JS.API.DIRECT.GET.${stream}.$KV.${victim.bucket}.ada`,
      `$JS.API.DIRECT.GET.${stream}.>`,
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.PURGE.${stream}`,
      ...management(stream),
    ];
    expect(await openTo(intruder.nats, ways)).toEqual([]);
    expect((await service.kv.accounts.get("ada").orThrow())?.value).toEqual({ n: 1 });
  });

  it("cannot be watched", async () => {
    const ways = [
      `${victim.watch}.>`,
      `${victim.watch}.ada`,
      `${victim.watch.slice(0, victim.watch.lastIndexOf("."))}.>`,
      "kvw.>",
      `$KV.${victim.bucket}.>`,
      "$KV.>",
      "$JS.EVENT.>",
    ];
    const open: string[] = [];
    for (const subject of ways) if (await maySubscribe(intruder.nats, subject)) open.push(subject);
    expect(open).toEqual([]);
    expect(await maySubscribe(intruder.nats, `${own.watch}.>`)).toBe(true);
  });

  it("is called what only its bindings say: JetStream stores an answer wherever a reply subject leads", async () => {
    // This is why names hold secret bits: the reply of a direct get would be stored under any name that is known.
    expect(victim.bucket).toMatch(/^[0-9a-f]{32}_accounts$/);
    expect(victim.bucket.slice(0, 32)).not.toBe(own.bucket.slice(0, 32));
    expect(await openTo(intruder.nats, telling)).toEqual([]);
    const { core } = trellis.controlPlane;
    const secret = victim.bucket.slice(0, 32);
    const told = JSON.stringify([
      intruder.answer,
      await core["Core.Deployments.List"]({}),
      await core["Core.Connections.List"]({}),
      await core["Core.Apis.List"]({}),
    ]);
    expect(told).not.toContain(secret);
  });

  it("would take what the broker delivers for somebody who knew its name: the limit that is documented", async () => {
    await intruder.nats.request(`$KV.${own.bucket}.loot`, '{"n":666}', { timeout: 5_000 });
    const get = `$JS.API.DIRECT.GET.KV_${own.bucket}.$KV.${own.bucket}.loot`;
    await mayPublish(intruder.nats, get, { reply: `$KV.${victim.bucket}.loot` });
    const entry = await eventually(async () => (await service.kv.accounts.get("loot").orThrow()) ?? false);
    expect(entry).toMatchObject({ value: { n: 666 } });
    await service.kv.accounts.delete("loot").orThrow();
  });

  it("is not reached by what a guess can name: wildcards in a reply subject are stored nowhere", async () => {
    await intruder.nats.request(`$KV.${own.bucket}.mine`, '{"n":666}');
    const get = `$JS.API.DIRECT.GET.KV_${own.bucket}.$KV.${own.bucket}.mine`;
    for (const reply of ["$KV.*.ada", "$KV.*.>", "$KV.>", `$KV.${"0".repeat(32)}_accounts.ada`])
      await mayPublish(intruder.nats, get, { reply });
    await intruder.nats.flush();
    const entry = await service.kv.accounts.get("ada").orThrow();
    expect(entry).toMatchObject({ value: { n: 1 } });
    expect(await service.kv.accounts.history("ada").orThrow()).toHaveLength(1);
  });
});
