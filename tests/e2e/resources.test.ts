import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { type AnyParticipant, defineService, kv, type Participant, store } from "@trellis/contract";
import { type ControlPlane, type ControlPlaneConfig, startControlPlane } from "@trellis/control-plane";
import { resourceName } from "@trellis/protocol";
import { connectServiceWith, nodePlatform, silentLogger } from "@trellis/runtime/node";
import { eventually, startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { describe, expect, it, onTestFinished } from "vitest";
import { secretOf } from "../../packages/control-plane/src/resources/wanted.ts";
import { findDeploymentByName } from "../../packages/control-plane/src/storage/deployments.ts";

const value = Type.Object({ n: Type.Integer() });
const id = "acme.depot";
const first = defineService(id, { kv: { stock: kv({ value }) } });
const second = defineService(id, {
  kv: { stock: kv({ value, history: 4 }), extra: kv({ value, optional: true }) },
});

/** A server whose deployments are moved from revision to revision by hand. */
async function startServer(config: Partial<ControlPlaneConfig> = {}): Promise<ControlPlane> {
  const dataDir = mkdtempSync(join(tmpdir(), "trellis-resources-"));
  const plane = await startControlPlane({ ...config, dataDir, mode: "server" });
  onTestFinished(async () => {
    await plane.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return plane;
}

async function install({ core }: ControlPlane, participant: Participant): Promise<void> {
  (await core["Core.Participants.Install"]({ artifact: { ...participant.artifact } })).orThrow();
}

async function update({ core }: ControlPlane, { digest }: Participant): Promise<void> {
  (await core["Core.Deployments.Update"]({ id, digest })).orThrow();
}

/** Connects a new instance of the one deployment. */
async function connect<P extends AnyParticipant>(plane: ControlPlane, participant: P) {
  const { seed = "" } = (await plane.core["Core.Instances.Provision"]({ deployment: id })).orThrow();
  const service = await connectServiceWith(
    {
      participant,
      trellisUrl: plane.url,
      root: plane.rootFingerprint,
      seed,
      timeout: 10_000,
      runtime: { log: false },
    },
    { platform: { ...nodePlatform, discover: () => ({ production: false }) } },
  ).orThrow();
  onTestFinished(() => service.stop());
  return service;
}

/** How often a connection was given an authorization. */
async function refreshes({ plane }: ControlPlane, connection: string): Promise<number> {
  const { queries } = plane.storage;
  const rows = await queries
    .selectFrom("authorizations")
    .select("digest")
    .where("connectionId", "=", connection)
    .execute();
  return rows.length;
}

/** What the one deployment's resource is called on the broker, before it is made. */
async function physicalName({ plane }: ControlPlane, alias: string): Promise<string> {
  const row = await findDeploymentByName(plane.storage.queries, id);
  if (row === undefined) throw new Error("there is no deployment");
  return resourceName(secretOf(row), alias);
}

async function managerOf({ plane }: ControlPlane) {
  return jetstreamManager(plane.links.app, { checkAPI: false });
}

describe("two revisions of a deployment at once", () => {
  it("share what both declare, with the limits of the one that is deployed", async () => {
    const plane = await startServer();
    for (const participant of [second, first]) await install(plane, participant);
    (await plane.core["Core.Deployments.Create"]({ participant: id })).orThrow();
    const older = await connect(plane, first);
    await older.kv.stock.put("a", { n: 1 }).orThrow();
    await update(plane, second);
    const newer = await connect(plane, second);
    expect((await newer.kv.stock.get("a").orThrow())?.value).toEqual({ n: 1 });
    await newer.kv.extra?.put("x", { n: 2 }).orThrow();
    await older.kv.stock.put("a", { n: 3 }).orThrow();
    expect(await newer.kv.stock.history("a").orThrow()).toHaveLength(2);
    const asked = await refreshes(plane, newer.auth.connectionId);
    await update(plane, first);
    await eventually(async () => (await refreshes(plane, newer.auth.connectionId)) > asked, {
      timeout: 10_000,
    });
    // What is detached is still there for those who run the other revision.
    expect((await newer.kv.extra?.get("x").orThrow())?.value).toEqual({ n: 2 });
    expect(newer.connection.status.phase).toBe("connected");
  });
});

describe("a resource that is missing", () => {
  it("ends the connect by its alias when it is required", async () => {
    const plane = await startServer();
    await install(plane, first);
    (await plane.core["Core.Deployments.Create"]({ participant: id })).orThrow();
    await connect(plane, first);
    // As after a database that was put back from a copy.
    await plane.plane.storage.queries.deleteFrom("resources").execute();
    const error = await connect(plane, first).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "trellis.bootstrap.binding_missing",
      message: expect.stringContaining('kv "stock"'),
    });
  });

  it("is undefined when it is optional, and appears with the refresh that brings it", async () => {
    const plane = await startServer({ authorization: { lifeMs: 3_000 } });
    await install(plane, second);
    (await plane.core["Core.Deployments.Create"]({ participant: id })).orThrow();
    const manager = await managerOf(plane);
    const theirs = `KV_${await physicalName(plane, "extra")}`;
    await manager.streams.add({ name: theirs, subjects: ["theirs"] });
    const service = await connect(plane, second);
    expect(service.kv.extra).toBeUndefined();
    await service.kv.stock.put("a", { n: 1 }).orThrow();
    await manager.streams.delete(theirs);
    const extra = await eventually(() => service.kv.extra ?? false, { timeout: 10_000 });
    if (typeof extra === "boolean") throw new Error("there is no such bucket");
    await eventually(async () => (await extra.put("x", { n: 2 }, { timeout: 1_000 })).isOk(), {
      timeout: 10_000,
    });
  });
});

describe("a broker that says no", () => {
  it("at a foreign stream of the name ends the connect, and touches nothing", async () => {
    const plane = await startServer();
    await install(plane, first);
    (await plane.core["Core.Deployments.Create"]({ participant: id })).orThrow();
    const name = await physicalName(plane, "stock");
    const manager = await managerOf(plane);
    await manager.streams.add({ name: `KV_${name}`, subjects: ["theirs"] });
    const error = await connect(plane, first).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "trellis.bootstrap.resource_refused" });
    expect((await manager.streams.info(`KV_${name}`)).config.subjects).toEqual(["theirs"]);
    await manager.streams.delete(`KV_${name}`);
    const service = await connect(plane, first);
    await service.kv.stock.put("a", { n: 1 }).orThrow();
  });

  it("for want of room ends the connect of whoever asks too much, and takes nothing from the others", async () => {
    const plane = await startServer();
    const greedy = defineService(id, {
      kv: { stock: kv({ value }) },
      store: { films: store({ maxTotal: "999999GiB" }) },
    });
    for (const participant of [greedy, first]) await install(plane, participant);
    (await plane.core["Core.Deployments.Create"]({ participant: id })).orThrow();
    const modest = await connect(plane, first);
    const asked = await refreshes(plane, modest.auth.connectionId);
    await update(plane, greedy);
    const error = await connect(plane, greedy).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "trellis.bootstrap.resource_refused",
      hint: expect.stringMatching(/no room for "films": insufficient storage/),
    });
    await eventually(async () => (await refreshes(plane, modest.auth.connectionId)) > asked);
    await modest.kv.stock.put("a", { n: 1 }).orThrow();
    expect(modest.connection.status.phase).toBe("connected");
  });
});

describe("the resources of a running service", () => {
  it("are made once for replicas that start at the same time", async () => {
    await using trellis = await startTrellis();
    const replicas = await Promise.all([1, 2, 3].map(() => trellis.service(second, () => undefined)));
    await replicas[0]?.kv.stock.put("a", { n: 1 }).orThrow();
    expect((await replicas[2]?.kv.stock.get("a").orThrow())?.value).toEqual({ n: 1 });
    const manager = await managerOf(trellis.controlPlane);
    const buckets: string[] = [];
    for await (const name of manager.streams.names()) if (name.startsWith("KV_")) buckets.push(name);
    expect(buckets).toHaveLength(2);
  });

  it("are there again after a start of the control plane over a broker that lost everything", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "trellis-resources-"));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const before = await startControlPlane({ dataDir, mode: "server" });
    await install(before, first);
    (await before.core["Core.Deployments.Create"]({ participant: id })).orThrow();
    const service = await connect(before, first);
    await service.kv.stock.put("a", { n: 1 }).orThrow();
    await service.stop();
    await before.stop();
    rmSync(join(dataDir, "nats"), { recursive: true, force: true });
    const warned: unknown[] = [];
    const log = { ...silentLogger, warn: ({ code }: { readonly code?: unknown }) => void warned.push(code) };
    const after = await startControlPlane({ dataDir, mode: "server", log });
    onTestFinished(() => after.stop());
    const again = await connect(after, first);
    expect(await again.kv.stock.get("a").orThrow()).toBeUndefined();
    await again.kv.stock.put("a", { n: 2 }).orThrow();
    expect(warned).toContain("trellis.resources.lost");
  });

  it("are there again, empty, when the broker comes back without its data; nobody has to ask", async () => {
    await using trellis = await startTrellis();
    const service = await trellis.service(first, () => undefined);
    await service.kv.stock.put("a", { n: 1 }).orThrow();
    const manager = await managerOf(trellis.controlPlane);
    for await (const name of manager.streams.names())
      if (name.startsWith("KV_")) await manager.streams.delete(name);
    const gone = await service.kv.stock.get("a");
    expect(gone.isErr() && gone.error).toMatchObject({ type: "KVError", reason: "bucket_missing" });
    await trellis.restartNats({ kill: true });
    await eventually(async () => (await service.kv.stock.get("a", { timeout: 1_000 })).isOk(), {
      timeout: 15_000,
    });
    await service.kv.stock.put("a", { n: 2 }).orThrow();
  });
});
