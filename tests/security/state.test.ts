import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineApp, state } from "@trellis/contract";
import { startControlPlane } from "@trellis/control-plane";
import { feedSubject, rpcSubject } from "@trellis/protocol";
import { connectClientWith, nodePlatform, stateApi } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { Attacker } from "./attacker.ts";
import { openTo } from "./resource-ways.ts";
import { intruderApp, startScene, startVault } from "./scene.ts";

const notes = defineApp("acme.notes", { state: { prefs: state({ value: Type.String() }) } });
const thief = defineApp("evil.notes", { state: { prefs: state({ value: Type.String() }) } });

let trellis: TestTrellis;
let platform: string;
beforeAll(async () => {
  trellis = await startScene();
  await startVault(trellis);
  const client = await trellis.client(notes);
  await client.state.prefs.put("mine").orThrow();
  const { deployments } = (await trellis.controlPlane.core["Core.Deployments.List"]({})).orThrow();
  platform = deployments.find(({ name }) => name === "trellis.platform")?.id ?? "";
});
afterAll(() => trellis?.stop());

it("state is everybody's own: no input names another principal or participant", async () => {
  await using attacker = await Attacker.join(trellis, thief);
  const ask = async (input: object) => {
    const echo = await attacker.ask(attacker.shot(stateApi.id, "State.Get", input));
    return echo?.kind === "results" ? echo.results[0]?.payload : echo;
  };
  expect(await ask({ alias: "prefs" })).toEqual({});
  const named = {
    principal: { kind: "app", id: "acme.notes" },
    participant: { id: "acme.notes" },
    participantId: "acme.notes",
  };
  expect(await ask({ alias: "prefs", ...named })).toEqual({});
  expect(await ask({ alias: "elsewhere" })).toMatchObject({ type: "StateNotDeclared" });
  expect(await ask({ alias: "../acme.notes/prefs" })).toMatchObject({ type: "ValidationError" });
});

it("who declares no state cannot call its API, nor can who does call any other of the platform's", async () => {
  await using none = await Attacker.join(trellis, intruderApp);
  await using some = await Attacker.join(trellis, thief);
  const subject = (api: string, action: string) => rpcSubject({ api, deployment: platform, action });
  const own = Object.keys(stateApi.rpc).map((action) => subject(stateApi.id, action));
  expect(await openTo(none.nats, own)).toEqual([]);
  expect(await openTo(some.nats, own)).toEqual(own);
  const others = [
    subject("trellis.core@v1", "Core.Participants.List"),
    subject("trellis.core@v1", "Core.Grants.Set"),
    subject("trellis.resources@v1", "Resources.Kv.Get"),
    subject("trellis.resources@v1", "Resources.Store.Read"),
    feedSubject({ api: "trellis.resources@v1", deployment: platform, action: "Resources.Kv.Watch" }),
  ];
  expect(await openTo(some.nats, others)).toEqual([]);
});

it("state needs no grant of an administrator", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "trellis-state-"));
  const plane = await startControlPlane({ dataDir, mode: "server" });
  onTestFinished(async () => {
    await plane.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  (await plane.core["Core.Participants.Install"]({ artifact: { ...notes.artifact } })).orThrow();
  (await plane.core["Core.Deployments.Create"]({ participant: "acme.notes" })).orThrow();
  const { seed = "" } = (
    await plane.core["Core.Instances.Provision"]({ deployment: "acme.notes" })
  ).orThrow();
  const client = await connectClientWith(
    { participant: notes, trellisUrl: plane.url, root: plane.rootFingerprint, seed, runtime: { log: false } },
    { platform: { ...nodePlatform, discover: () => ({ production: false }) } },
  ).orThrow();
  onTestFinished(() => client.close());
  await client.state.prefs.put("mine").orThrow();
  expect((await client.state.prefs.get().orThrow())?.value).toBe("mine");
});
