import { err, ok } from "@trellis/result";
import { describe, expect, it } from "vitest";
import { chooseBinding, chosenBindings, findDeployment, insertDeployment, rollEpoch } from "./deployments.ts";
import {
  findParticipant,
  findParticipantByDigest,
  insertParticipant,
  listParticipants,
} from "./participants.ts";
import { allRevocations, saveRevocation } from "./revocations.ts";
import { Storage } from "./storage.ts";

const entry = { id: "1", at: 1, actor: "test", action: "test", subject: "none" };
const deployment = {
  id: "d1",
  name: "orders",
  participantId: "acme.orders",
  participantDigest: "x1",
  disabled: 0,
  epoch: 1,
  previousEpoch: null,
  previousUntil: null,
  secret: "s",
  createdAt: 1_900_000_000_000,
} as const;

function participant(revision: number, digest: string) {
  return {
    id: "acme.orders",
    revision,
    digest,
    kind: "service",
    artifact: `{"r":${revision}}`,
    owner: null,
    installedAt: revision,
  } as const;
}

describe("storage", () => {
  it("writes a mutation together with its audit row, and neither when it is refused or throws", async () => {
    const storage = await Storage.open(":memory:");
    await storage.mutate(entry, (tx) => insertDeployment(tx, deployment));
    expect(await findDeployment(storage.queries, "d1")).toEqual(deployment);
    const refused = await storage.mutate({ ...entry, id: "2" }, async (tx) => {
      await insertDeployment(tx, { ...deployment, id: "d2", name: "other" });
      return err(new Error("no"));
    });
    expect(refused.isErr()).toBe(true);
    await expect(
      storage.mutate({ ...entry, id: "3" }, async (tx) => {
        await insertDeployment(tx, { ...deployment, id: "d3", name: "third" });
        throw new Error("broken");
      }),
    ).rejects.toThrow("broken");
    expect(await findDeployment(storage.queries, "d2")).toBeUndefined();
    expect(await findDeployment(storage.queries, "d3")).toBeUndefined();
    expect((await storage.queries.selectFrom("audit").selectAll().execute()).map((row) => row.id)).toEqual([
      "1",
    ]);
    expect((await storage.mutate({ ...entry, id: "4" }, async () => ok(5))).isOk()).toBe(true);
    await storage.close();
  });

  it("keeps participant revisions and finds the current one and one by digest", async () => {
    const storage = await Storage.open(":memory:");
    const { queries } = storage;
    for (const [revision, digest] of [
      [1, "x1"],
      [2, "x2"],
      [3, "x1"],
    ] as const) {
      await insertParticipant(queries, participant(revision, digest));
    }
    expect((await findParticipant(queries, "acme.orders"))?.revision).toBe(3);
    expect((await findParticipantByDigest(queries, "acme.orders", "x2"))?.revision).toBe(2);
    expect((await listParticipants(queries, { limit: 5, after: undefined })).rows).toHaveLength(1);
    await insertDeployment(queries, deployment);
    await chooseBinding(queries, { deploymentId: "d1", api: "a@v1", providerId: "p1", now: 1 });
    await chooseBinding(queries, { deploymentId: "d1", api: "a@v1", providerId: "p2", now: 2 });
    expect([...(await chosenBindings(queries, "d1"))]).toEqual([["a@v1", "p2"]]);
    await storage.close();
  });

  it("rolls an epoch at once or with an overlap, and keeps the later of two revocations", async () => {
    const storage = await Storage.open(":memory:");
    const { queries } = storage;
    await insertDeployment(queries, deployment);
    expect(await rollEpoch(queries, "d1", 50)).toMatchObject({
      epoch: 2,
      previousEpoch: 1,
      previousUntil: 50,
    });
    expect(await rollEpoch(queries, "d1")).toMatchObject({
      epoch: 3,
      previousEpoch: null,
      previousUntil: null,
    });
    const revocation = { subjectKind: "instance", subjectId: "i", reason: "r", payload: "p", signature: "s" };
    await saveRevocation(queries, { ...revocation, at: 5 });
    await saveRevocation(queries, { ...revocation, at: 3 });
    expect((await allRevocations(queries)).map((row) => row.at)).toEqual([5]);
    await storage.close();
  });
});
