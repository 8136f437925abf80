import { createHash } from "node:crypto";
import { defineService, kv, store } from "@trellis/contract";
import { CHUNK_BYTES, cliParticipant } from "@trellis/control-plane/core";
import type { ConnectedClient } from "@trellis/runtime";
import type { ConnectedService } from "@trellis/runtime/service";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const Site = Type.Object({ name: Type.String({ minLength: 1 }) });
const field = defineService("acme.field", {
  kv: {
    sites: kv({ value: Site, history: 3, version: 2, migrate: { 1: (old) => ({ name: String(old) }) } }),
  },
  store: { photos: store({ maxObject: "4MiB" }) },
});
const sites = { deployment: "acme.field", alias: "sites" };
const photos = { deployment: "acme.field", alias: "photos" };

let trellis: TestTrellis;
let service: ConnectedService<typeof field>;
let admin: ConnectedClient<typeof cliParticipant>;
beforeAll(async () => {
  trellis = await startTrellis();
  service = await trellis.service(field, () => undefined);
  admin = await trellis.client(cliParticipant);
});
afterAll(() => trellis?.stop());

const resources = () => admin.rpc.resources;

async function audited(): Promise<string[]> {
  const { queries } = trellis.controlPlane.plane.storage;
  const rows = await queries.selectFrom("audit").select(["actor", "action"]).orderBy("at").execute();
  return rows.filter(({ actor }) => actor.startsWith("trellis.cli/")).map(({ action }) => action);
}

function digestOf(bytes: Uint8Array): string {
  return `SHA-256=${createHash("sha256").update(bytes).digest("base64url")}=`;
}

/** Sends bytes piece by piece, as the command line does. */
async function upload(key: string, bytes: Uint8Array, digest = digestOf(bytes)) {
  let transfer: { transfer?: string } = {};
  for (let offset = 0; ; offset += CHUNK_BYTES) {
    const piece = Buffer.from(bytes.subarray(offset, offset + CHUNK_BYTES)).toString("base64");
    const last = offset + CHUNK_BYTES >= bytes.length;
    const input = { ...photos, key, ...transfer, offset, data: piece, ...(last ? { digest } : {}) };
    const answer = await resources().storeWrite(input);
    if (answer.isErr() || last) return answer;
    transfer = { transfer: answer.value.transfer };
  }
}

describe("what deployments keep", () => {
  it("is listed with its state, its limits and how much is in it, and never by its secret name", async () => {
    await service.kv.sites.put("oslo", { name: "Oslo" }).orThrow();
    const listed = await resources().list({ deployment: "acme.field" }).orThrow();
    expect(listed.resources.map(({ kind, alias, state }) => [kind, alias, state])).toEqual([
      ["kv", "sites", "attached"],
      ["store", "photos", "attached"],
    ]);
    const got = await resources()
      .get({ ...sites, kind: "kv" })
      .orThrow();
    expect(got).toMatchObject({ limits: { history: 3, ttlMs: null }, usage: { messages: 1 } });
    expect(JSON.stringify([listed, got])).not.toMatch(/[0-9a-f]{32}_/);
    const unknown = await resources().get({ ...sites, alias: "other", kind: "kv" });
    expect(unknown.isErr() && unknown.error).toMatchObject({ type: "NotKnown" });
  });

  it("is destroyed when it is detached, else only by force", async () => {
    const other = defineService("acme.fleeting", { kv: { old: kv({ value: Site }) } });
    await trellis.service(other, () => undefined);
    const old = { deployment: "acme.fleeting", kind: "kv" as const, alias: "old" };
    const refused = await resources().destroy(old);
    expect(refused.isErr() && refused.error).toMatchObject({ type: "ResourceAttached" });
    await trellis.service(
      defineService("acme.fleeting", { kv: { young: kv({ value: Site }) } }),
      () => undefined,
    );
    expect((await resources().get(old).orThrow()).resource.state).toBe("detached");
    expect(await resources().destroy(old).orThrow()).toEqual({ destroyed: true });
    expect((await resources().get(old)).isErr()).toBe(true);
    await resources()
      .destroy({ ...old, alias: "young", force: true })
      .orThrow();
    expect(await audited()).toEqual(expect.arrayContaining(["resource.destroy"]));
  });
});

describe("what is in a bucket", () => {
  it("is listed, read, written by the contract's rules, and deleted", async () => {
    for (const key of ["a/1", "a/2", "b"]) await service.kv.sites.put(key, { name: key }).orThrow();
    expect(
      await resources()
        .kvKeys({ ...sites, prefix: "a/", limit: 1 })
        .orThrow(),
    ).toMatchObject({ keys: ["a/1"] });
    const first = await resources()
      .kvKeys({ ...sites, prefix: "a/", limit: 1 })
      .orThrow();
    const { cursor = "" } = first;
    expect(
      await resources()
        .kvKeys({ ...sites, prefix: "a/", cursor })
        .orThrow(),
    ).toEqual({ keys: ["a/2"] });
    const { revision } = await resources()
      .kvPut({ ...sites, key: "b", value: { name: "B" } })
      .orThrow();
    expect((await service.kv.sites.get("b").orThrow())?.value).toEqual({ name: "B" });
    const wrong = await resources().kvPut({ ...sites, key: "b", value: { name: "" } });
    expect(wrong.isErr() && wrong.error).toMatchObject({ type: "ResourceRefused" });
    const stale = await resources().kvPut({
      ...sites,
      key: "b",
      value: { name: "C" },
      revision: revision - 1,
    });
    expect(stale.isErr() && stale.error).toMatchObject({ type: "RevisionStale", data: { revision } });
    const exists = await resources().kvPut({ ...sites, key: "b", value: { name: "C" }, revision: 0 });
    expect(exists.isErr() && exists.error).toMatchObject({ type: "RevisionStale" });
    await resources()
      .kvDelete({ ...sites, key: "b", revision })
      .orThrow();
    const gone = await resources().kvGet({ ...sites, key: "b" });
    expect(gone.isErr() && gone.error).toMatchObject({ type: "NotKnown", data: { kind: "key" } });
    const actions = await audited();
    for (const action of ["keys", "put", "delete", "get"])
      expect(actions).toContain(`resources.kv.${action}`);
  });

  it("is shown as it was written, in whatever representation, readable or not", async () => {
    const { plane } = trellis.controlPlane;
    const { name } = await plane.storage.queries
      .selectFrom("resources")
      .select("name")
      .where("alias", "=", "sites")
      .executeTakeFirstOrThrow();
    plane.links.app.publish(`$KV.${name}.old`, '"of version 1"');
    plane.links.app.publish(`$KV.${name}.broken`, "{");
    await plane.links.app.flush();
    expect(
      await resources()
        .kvGet({ ...sites, key: "old" })
        .orThrow(),
    ).toMatchObject({
      entry: { kind: "value", value: "of version 1" },
    });
    expect(
      await resources()
        .kvGet({ ...sites, key: "broken" })
        .orThrow(),
    ).toMatchObject({
      entry: { kind: "invalid", problem: expect.stringContaining("not JSON") },
    });
    await resources()
      .kvDelete({ ...sites, key: "broken" })
      .orThrow();
  });

  it("is not reached by wildcards: a key is a key on this surface too (C10)", async () => {
    for (const key of ["a/1", "a/2"]) await service.kv.sites.put(key, { name: key }).orThrow();
    const before = await service.kv.sites.keys().collect().orThrow();
    for (const key of ["*", ">", "a.*", "a/*", "a.>", ".", "a..b", "$KV.other.x"]) {
      expect((await resources().kvGet({ ...sites, key })).isErr(), key).toBe(true);
      await resources()
        .kvPut({ ...sites, key, value: { name: "wild" } })
        .orThrow();
      expect(
        await resources()
          .kvGet({ ...sites, key })
          .orThrow(),
      ).toMatchObject({ entry: { key } });
      await resources()
        .kvDelete({ ...sites, key })
        .orThrow();
    }
    const empty = await resources().kvGet({ ...sites, key: "" });
    expect(empty.isErr() && empty.error.type).toBe("ValidationError");
    expect(new Set(await service.kv.sites.keys().collect().orThrow())).toEqual(new Set(before));
  });

  it("is watched live: what is there, ready, then changes, until the one who watches leaves", async () => {
    const seen: string[] = [];
    const leaving = new AbortController();
    const opened = admin.feed.resources.kvWatch({ ...sites, prefix: "w/" }, { signal: leaving.signal });
    const watching = (async () => {
      for await (const item of opened)
        seen.push(item.kind === "ready" ? "ready" : `${item.kind} ${item.key}`);
    })();
    await eventually(() => expect(seen).toEqual(["ready"]));
    await service.kv.sites.put("w/1", { name: "one" }).orThrow();
    await service.kv.sites.delete("w/1").orThrow();
    await eventually(() => expect(seen).toEqual(["ready", "value w/1", "deleted w/1"]));
    leaving.abort();
    await watching.catch(() => undefined);
  });
});

describe("what is in a store", () => {
  const bytes = new Uint8Array(3 * 1024 * 1024 + 17).map((_, at) => at * 7);

  it("is moved in pieces, of any size, and is what was sent", async () => {
    for (const size of [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, bytes.length]) {
      const part = bytes.subarray(0, size);
      const { object } = (await upload("photo", part)).orThrow();
      expect(object).toMatchObject({ key: "photo", size, digest: digestOf(part) });
      const received: Buffer[] = [];
      for (let transfer = {}, offset = 0, done = false; !done; ) {
        const piece = await resources()
          .storeRead({ ...photos, key: "photo", ...transfer, offset })
          .orThrow();
        received.push(Buffer.from(piece.data, "base64"));
        offset += received.at(-1)?.length ?? 0;
        transfer = { transfer: piece.transfer };
        done = piece.done;
      }
      expect(Buffer.concat(received).equals(part)).toBe(true);
    }
    const { objects } = await resources()
      .storeList({ ...photos, prefix: "ph" })
      .orThrow();
    expect(objects.map(({ key }) => key)).toEqual(["photo"]);
    expect(
      (
        await resources()
          .storeHead({ ...photos, key: "photo" })
          .orThrow()
      ).object.size,
    ).toBe(bytes.length);
  });

  it("stays as it was when the digest is wrong, when a piece is missing, and when it is too large", async () => {
    (await upload("kept", bytes.subarray(0, 10))).orThrow();
    const wrong = await upload("kept", bytes.subarray(0, 700_000), digestOf(bytes));
    expect(wrong.isErr() && wrong.error).toMatchObject({
      type: "ResourceRefused",
      data: { problem: expect.stringContaining("digest") },
    });
    const { transfer } = await resources()
      .storeWrite({ ...photos, key: "kept", offset: 0, data: "AAAA" })
      .orThrow();
    const torn = await resources().storeWrite({ ...photos, key: "kept", transfer, offset: 9, data: "AAAA" });
    expect(torn.isErr() && torn.error).toMatchObject({ type: "TransferLost" });
    const large = await upload("kept", new Uint8Array(4 * 1024 * 1024 + 1));
    expect(large.isErr() && large.error).toMatchObject({ type: "ResourceRefused" });
    expect(
      (
        await resources()
          .storeHead({ ...photos, key: "kept" })
          .orThrow()
      ).object.size,
    ).toBe(10);
  });

  it("is deleted; what is not there is told by name", async () => {
    (await upload("gone", bytes.subarray(0, 10))).orThrow();
    expect(
      await resources()
        .storeDelete({ ...photos, key: "gone" })
        .orThrow(),
    ).toEqual({ deleted: true });
    expect(
      await resources()
        .storeDelete({ ...photos, key: "gone" })
        .orThrow(),
    ).toEqual({ deleted: false });
    const read = await resources().storeRead({ ...photos, key: "gone", offset: 0 });
    expect(read.isErr() && read.error).toMatchObject({ type: "NotKnown", data: { kind: "object" } });
    const actions = await audited();
    for (const action of ["list", "read", "write", "delete"])
      expect(actions).toContain(`resources.store.${action}`);
  });
});
