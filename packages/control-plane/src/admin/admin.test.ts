import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineApp, use } from "@trellis/contract";
import type { ConnectArgs } from "@trellis/runtime";
import { connectClientWith, connectServiceWith, nodePlatform } from "@trellis/runtime/node";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type ControlPlane, startControlPlane } from "../control-plane.ts";
import { coreApi } from "../core/api.ts";
import { cliParticipant, platformParticipant } from "./participants.ts";

const watcher = defineApp("acme.watcher", {
  uses: [use(coreApi, { rpc: ["Core.Connections.List", "Core.Deployments.Create"] })],
});

async function start(config: { mode: "dev" | "server"; lifeMs?: number }): Promise<ControlPlane> {
  const dataDir = mkdtempSync(join(tmpdir(), "trellis-admin-"));
  const { mode, lifeMs } = config;
  const plane = await startControlPlane({
    dataDir,
    mode,
    ...(lifeMs === undefined ? {} : { authorization: { lifeMs } }),
  });
  onTestFinished(async () => {
    await plane.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return plane;
}

async function connect<P extends ConnectArgs<typeof watcher>["participant"] | typeof cliParticipant>(
  plane: ControlPlane,
  participant: P,
  seed?: string,
) {
  const { devToken } = plane;
  const discover = () => ({ production: false, ...(devToken === undefined ? {} : { devToken }) });
  const client = await connectClientWith(
    {
      participant,
      trellisUrl: plane.url,
      root: plane.rootFingerprint,
      ...(seed === undefined ? {} : { seed }),
      runtime: { log: false, noResponderRetry: false },
    },
    { platform: { ...nodePlatform, discover } },
  ).orThrow();
  onTestFinished(() => client.close());
  return client;
}

/** Installs the watcher in server mode; its deployment and the seed of an instance. */
async function provisionWatcher(plane: ControlPlane) {
  const { core } = plane;
  (await core["Core.Participants.Install"]({ artifact: { ...watcher.artifact } })).orThrow();
  const { deployment } = (await core["Core.Deployments.Create"]({ participant: "acme.watcher" })).orThrow();
  const { seed } = (await core["Core.Instances.Provision"]({ deployment: "acme.watcher" })).orThrow();
  return { deployment: deployment.id, seed };
}

describe("the platform's own API in dev mode", () => {
  it("answers whoever holds the token, as its contract asks", async () => {
    const plane = await start({ mode: "dev" });
    const client = await connect(plane, watcher);
    const { connections } = await client.rpc.core.connectionsList({}).orThrow();
    expect(connections.map((row) => `${row.participant.id} ${row.state}`).sort()).toEqual([
      "acme.watcher connected",
      "trellis.platform connected",
    ]);
    const created = await client.rpc.core.deploymentsCreate({ participant: "acme.nobody" });
    expect(created.isErr() && created.error).toMatchObject({ kind: "declared", type: "NotKnown" });
  });

  it("knows the command line, and lists what can be called", async () => {
    const plane = await start({ mode: "dev" });
    const client = await connect(plane, cliParticipant);
    const { apis } = await client.rpc.core.apisList({}).orThrow();
    expect(apis.map(({ id }) => id)).toEqual(["trellis.core@v1", "trellis.events@v1"]);
    const { artifact } = await client.rpc.core.apisGet({ id: "trellis.core@v1" }).orThrow();
    expect(artifact).toEqual(coreApi.artifact);
  });

  it("outlives a crash of the broker and many refreshes of its own authorization", async () => {
    const plane = await start({ mode: "dev", lifeMs: 1_500 });
    const client = await connect(plane, watcher);
    await plane.nats?.restart({ kill: true });
    const until = Date.now() + 4_000;
    await vi.waitFor(
      async () => {
        await client.rpc.core.connectionsList({}).orThrow();
        expect(Date.now()).toBeGreaterThan(until);
      },
      { timeout: 8_000, interval: 100 },
    );
  });

  it("lets nobody be the platform, the holder of the token included", async () => {
    const plane = await start({ mode: "dev" });
    const { devToken = "" } = plane;
    const impostor = await connectServiceWith(
      { participant: platformParticipant, trellisUrl: plane.url, runtime: { log: false } },
      { platform: { ...nodePlatform, discover: () => ({ production: false, devToken }) } },
    );
    expect(impostor.isErr() && impostor.error).toMatchObject({ code: "trellis.bootstrap.denied" });
  });

  it("does not let itself be changed", async () => {
    const { core } = await start({ mode: "dev" });
    const owned = { kind: "declared", type: "PlatformOwned" };
    for (const id of [platformParticipant.id, cliParticipant.id]) {
      const disabled = await core["Core.Deployments.Disable"]({ id });
      expect(disabled.isErr() && disabled.error).toMatchObject(owned);
      const second = await core["Core.Deployments.Create"]({ participant: id, name: "acme.second" });
      expect(second.isErr() && second.error).toMatchObject(owned);
    }
    const { deployment } = platformParticipant.id
      ? { deployment: platformParticipant.id }
      : { deployment: "" };
    const provisioned = await core["Core.Instances.Provision"]({ deployment });
    expect(provisioned.isErr() && provisioned.error).toMatchObject(owned);
    const { instances } = (await core["Core.Instances.List"]({ deployment })).orThrow();
    const stopped = await core["Core.Instances.Disable"]({ id: instances[0]?.id ?? "" });
    expect(stopped.isErr() && stopped.error).toMatchObject(owned);
    const { connections } = (await core["Core.Connections.List"]({ deployment })).orThrow();
    const kicked = await core["Core.Connections.Kick"]({ id: connections[0]?.id ?? "", revoke: true });
    expect(kicked.isErr() && kicked.error).toMatchObject(owned);
  });
});

describe("the platform's own API in server mode", () => {
  it("is not given to a participant because its contract asks for it", async () => {
    const plane = await start({ mode: "server" });
    const { seed } = await provisionWatcher(plane);
    const client = await connect(plane, watcher, seed);
    const listed = await client.rpc.core.connectionsList({});
    expect(listed.isErr() && listed.error).toMatchObject({ type: "UnavailableError" });
    expect(listed.isErr() && listed.error.message).toContain("not_granted");
  });

  it("is given by the action that an administrator grants, and taken away at once", async () => {
    const plane = await start({ mode: "server" });
    const { deployment, seed } = await provisionWatcher(plane);
    const client = await connect(plane, watcher, seed);
    const grant = async (rpc: string[], revision?: number) =>
      plane.core["Core.Grants.Set"]({ deployment, rpc, ...(revision === undefined ? {} : { revision }) });
    (await grant(["Core.Connections.List"], 0)).orThrow();
    await vi.waitFor(() => client.rpc.core.connectionsList({}).orThrow(), 5_000);
    const created = await client.rpc.core.deploymentsCreate({ participant: "acme.watcher" });
    expect(created.isErr() && created.error.type).toBe("AuthError");
    const stale = await grant(["*"], 0);
    expect(stale.isErr() && stale.error).toMatchObject({ type: "RevisionStale", data: { revision: 1 } });
    (await grant([])).orThrow();
    await vi.waitFor(async () => {
      const after = await client.rpc.core.connectionsList({});
      expect(after.isErr() && after.error.message).toContain("not_granted");
    }, 5_000);
  });
});
