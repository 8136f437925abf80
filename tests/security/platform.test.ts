import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AnyParticipant,
  defineApi,
  defineApp,
  defineService,
  reserved,
  rpc,
  use,
} from "@trellis/contract";
import { type ControlPlane, startControlPlane } from "@trellis/control-plane";
import { rpcSubject, toBase64Url } from "@trellis/protocol";
import type { TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cliParticipant, platformParticipant } from "../../packages/control-plane/src/admin/participants.ts";
import { coreApi } from "../../packages/control-plane/src/core/api.ts";
import { Attacker } from "./attacker.ts";
import { mayPublish } from "./broker-probe.ts";
import { bootstrap, type Keys, makeKeys } from "./http.ts";
import { startScene } from "./scene.ts";

const nosy = defineApp("evil.nosy", {
  uses: [use(coreApi, { rpc: ["Core.Participants.List", "Core.Instances.Provision", "Core.Grants.Set"] })],
});

describe("the platform's own name", () => {
  let trellis: TestTrellis;
  beforeAll(async () => {
    trellis = await startScene();
  });
  afterAll(() => trellis?.stop());

  it("is nobody else's to provide or to run under, with the dev token or without", async () => {
    const own = defineApi("trellis.core@v1", { rpc: { "Core.Participants.List": rpc() } }, reserved);
    const impostors: AnyParticipant[] = [
      platformParticipant,
      defineService("trellis.platform", { implements: [] }, reserved),
      defineService("trellis.other", { implements: [] }, reserved),
      defineService("evil.core", { implements: [own] }, reserved),
    ];
    for (const participant of impostors) {
      for (const token of [trellis.devToken, null]) {
        const refused = await bootstrap(trellis, { keys: makeKeys(), participant }, { token });
        expect([participant.id, refused.status >= 400 && refused.status < 500]).toEqual([
          participant.id,
          true,
        ]);
      }
    }
    expect(
      (await bootstrap(trellis, { keys: makeKeys(), participant: cliParticipant }, { token: null })).status,
    ).toBe(401);
    expect((await bootstrap(trellis, { keys: makeKeys(), participant: nosy })).status).toBe(200);
  });
});

describe("the platform's own API in a server", () => {
  let folder: string;
  let plane: ControlPlane;
  let deployment: string;
  let keys: Keys;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "trellis-server-"));
    plane = await startControlPlane({ dataDir: folder, mode: "server", failuresPerMinute: 1_000_000 });
    const { core } = plane;
    const artifact = { ...nosy.artifact };
    (await core["Core.Participants.Install"]({ artifact })).orThrow();
    const created = await core["Core.Deployments.Create"]({ participant: nosy.id, name: nosy.id });
    deployment = created.orThrow().deployment.id;
    keys = makeKeys();
    const identityKey = toBase64Url(keys.identity.publicKey);
    (await core["Core.Instances.Provision"]({ deployment, identityKey })).orThrow();
  });
  afterAll(async () => {
    await plane?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** The process of the provisioned instance, with fresh session keys. */
  function connect(): Promise<Attacker> {
    const session = { ...makeKeys(), identity: keys.identity };
    return Attacker.join({ url: plane.url, devToken: "" }, nosy, session, { token: null });
  }

  async function allowed(self: Attacker): Promise<string[]> {
    const { id } = await platformDeployment();
    const found: string[] = [];
    for (const action of Object.keys(coreApi.rpc)) {
      if (await mayPublish(self.nats, rpcSubject({ api: coreApi.id, deployment: id, action })))
        found.push(action);
    }
    return found;
  }

  async function platformDeployment(): Promise<{ id: string }> {
    const { deployments } = (await plane.core["Core.Deployments.List"]({})).orThrow();
    const own = deployments.find((row) => row.participant.id === platformParticipant.id);
    if (own === undefined) throw new Error("The platform has no deployment of its own.");
    return own;
  }

  it("is granted one by one: a contract that wants it gets nothing by wanting", async () => {
    await using self = await connect();
    expect(self.answer.grants.calls.flatMap((call) => call.rpc)).toEqual([]);
    expect(await allowed(self)).toEqual([]);
  });

  it("is granted as far as an administrator says, and no further", async () => {
    const { core } = plane;
    (await core["Core.Grants.Set"]({ deployment, rpc: ["Core.Participants.List"] })).orThrow();
    await using self = await connect();
    expect(await allowed(self)).toEqual(["Core.Participants.List"]);
    const echo = await self.ask(self.shot(coreApi.id, "Core.Participants.List", {}));
    expect(echo).toMatchObject({ kind: "results", authentic: true, results: [{ status: 0 }] });
    // A grant of what the contract does not use is no use.
    (
      await core["Core.Grants.Set"]({ deployment, rpc: ["Core.Participants.List", "Core.Connections.Kick"] })
    ).orThrow();
    await using again = await connect();
    expect(await allowed(again)).toEqual(["Core.Participants.List"]);
    // Withdrawn, it is gone from the connection that had it.
    (await core["Core.Grants.Set"]({ deployment, rpc: [] })).orThrow();
    await again.nats.closed();
  });

  it("gives nobody an instance of the platform, whose route key is every administrator's trust", async () => {
    const { id } = await platformDeployment();
    const identityKey = toBase64Url(makeKeys().identity.publicKey);
    const { core } = plane;
    for (const refused of [
      await core["Core.Instances.Provision"]({ deployment: id, identityKey }),
      await core["Core.Deployments.Disable"]({ id }),
      await core["Core.Deployments.Create"]({ participant: platformParticipant.id, name: "evil" }),
      await core["Core.Participants.Install"]({ artifact: { ...platformParticipant.artifact } }),
    ]) {
      expect(refused.isErr()).toBe(true);
    }
  });
});
