import {
  canonicalJson,
  consumer,
  defineApi,
  defineService,
  event,
  job,
  kv,
  store,
  use,
} from "@trellis/contract";
import { EVENT_STREAM } from "@trellis/protocol";
import { Type } from "typebox";
import { describe, expect, it, onTestFinished } from "vitest";
import { saveResource } from "../storage/resources.ts";
import { ForeignResource, ResourcesFailed } from "./resource-errors.ts";
import { artifactOf, Bed } from "./resources.test-kit.ts";
import { wantedResources } from "./wanted.ts";

const api = defineApi("acme.orders@v1", {
  events: {
    "Order.Placed": event({ payload: Type.String() }),
    "Order.Paid": event({ payload: Type.String() }),
  },
});
const value = Type.String();
const placed = api.events["Order.Placed"];
const id = "acme.orders-service";

const everything = defineService(id, {
  uses: [use(api)],
  kv: { carts: kv({ value }) },
  store: { files: store({ maxTotal: "1MiB" }) },
  consumers: { orders: consumer({ events: [placed] }) },
  jobs: { mail: job({ payload: value }) },
});
const cartsOnly = defineService(id, { kv: { carts: kv({ value }) } });
const cartsWithHistory = defineService(id, {
  kv: { carts: kv({ value, history: 5, maxValue: "1KiB", ttl: "1d" }) },
});
const nothing = defineService(id, { kv: {} });

async function open(config?: string): Promise<Bed> {
  const bed = await Bed.open(config);
  onTestFinished(() => bed[Symbol.asyncDispose]());
  return bed;
}

/** The failures that an `ensure` ended with. */
async function failuresOf(work: Promise<void>): Promise<ResourcesFailed["failures"]> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ResourcesFailed);
  return error instanceof ResourcesFailed ? error.failures : [];
}

describe("the resources of a deployment", () => {
  it("are made once, whoever asks, however often, also two control planes at once", async () => {
    const bed = await open();
    const row = await bed.deploy(everything);
    const planes = [bed.resources(), bed.resources()];
    await planes[0]?.start();
    const artifact = artifactOf(everything);
    await Promise.all(planes.flatMap((plane) => [plane.ensure(row, artifact), plane.ensure(row, artifact)]));
    const names = wantedResources(row, artifact).map(({ kind, alias }) => `${kind} ${alias}`);
    expect((await bed.rows(row)).map(({ kind, alias }) => `${kind} ${alias}`).sort()).toEqual(names.sort());
    // Streams of the bucket, the store, the dead letters, the jobs with their bucket, and the events.
    expect(await bed.streams()).toHaveLength(6);
    const bound = await planes[1]?.bindings(row, artifact);
    expect(bound).toMatchObject({
      kv: { carts: { history: 1 } },
      store: { files: { maxTotalBytes: 1_048_576 } },
      consumers: { orders: { stream: EVENT_STREAM } },
      jobs: { queues: { mail: {} } },
    });
    expect(await bed.actions()).not.toContain("resource.change");
    for (const { config } of await bed.manager.streams.list().next())
      expect(config.metadata).toMatchObject({ "trellis.platform": "platform" });
  });

  it("take new limits from a new revision, and keep their data", async () => {
    const bed = await open();
    const resources = bed.resources();
    let row = await bed.deploy(cartsOnly);
    await resources.ensure(row, artifactOf(cartsOnly));
    const [{ name } = { name: "" }] = await bed.rows(row);
    await bed.admin.request(`$KV.${name}.key`, "kept");
    row = await bed.redeploy(row, cartsWithHistory);
    await resources.ensure(row, artifactOf(cartsWithHistory));
    const config = (await bed.manager.streams.info(`KV_${name}`)).config;
    expect(config).toMatchObject({
      max_msgs_per_subject: 5,
      max_msg_size: 2_048,
      max_age: 86_400_000_000_000,
    });
    row = await bed.redeploy(row, cartsOnly);
    await resources.ensure(row, artifactOf(cartsOnly));
    const back = await bed.manager.streams.info(`KV_${name}`);
    expect(back.config).toMatchObject({ max_msgs_per_subject: 1, max_msg_size: -1, max_age: 0 });
    expect(back.state.messages).toBe(1);
    expect(await bed.actions()).toEqual(["resource.create", "resource.change", "resource.change"]);
  });

  it("are detached with their data when no longer declared, and attached with it when they are again", async () => {
    const bed = await open();
    const resources = bed.resources();
    let row = await bed.deploy(cartsOnly);
    await resources.ensure(row, artifactOf(cartsOnly));
    const [{ name } = { name: "" }] = await bed.rows(row);
    await bed.admin.request(`$KV.${name}.key`, "kept");
    row = await bed.redeploy(row, nothing);
    await resources.ensure(row, artifactOf(nothing));
    expect(await bed.rows(row)).toMatchObject([{ alias: "carts", state: "detached" }]);
    expect((await resources.bindings(row, artifactOf(nothing))).kv).toEqual({});
    // A process of the revision before still has what is there.
    expect((await resources.bindings(row, artifactOf(cartsOnly))).kv).toMatchObject({
      carts: { bucket: name },
    });
    row = await bed.redeploy(row, cartsOnly);
    await resources.ensure(row, artifactOf(cartsOnly));
    expect(await bed.rows(row)).toMatchObject([{ alias: "carts", state: "attached", name }]);
    expect((await bed.manager.streams.info(`KV_${name}`)).state.messages).toBe(1);
    expect(await bed.actions()).toEqual(["resource.create", "resource.detach", "resource.attach"]);
  });

  it("follow changes of a consumer: its events, its ack wait, its order; where it was stays", async () => {
    const bed = await open();
    const resources = bed.resources();
    await resources.start();
    const define = (rest: Parameters<typeof consumer>[0]) =>
      defineService(id, { uses: [use(api)], consumers: { orders: consumer(rest) } });
    const first = define({ events: [placed] });
    const second = define({ events: [placed, api.events["Order.Paid"]], ackWait: "7s", ordering: "per-key" });
    let row = await bed.deploy(first);
    await resources.ensure(row, artifactOf(first));
    const { consumers } = await resources.bindings(row, artifactOf(first));
    const name = consumers["orders"]?.consumer ?? "";
    row = await bed.redeploy(row, second);
    await resources.ensure(row, artifactOf(second));
    const { config } = await bed.manager.consumers.info(EVENT_STREAM, name);
    expect(config).toMatchObject({ ack_wait: 7_000_000_000, priority_policy: "pinned_client" });
    expect(config.filter_subjects).toHaveLength(3);
    row = await bed.redeploy(row, first);
    await resources.ensure(row, artifactOf(first));
    const back = (await bed.manager.consumers.info(EVENT_STREAM, name)).config;
    expect(back.priority_policy ?? "none").toBe("none");
    expect(back.filter_subjects).toHaveLength(2);
  });

  it("of two revisions at once are those of the deployment's own; each process has what its contract declares", async () => {
    const bed = await open();
    const resources = bed.resources();
    const queues = (names: readonly string[]) =>
      defineService(id, { jobs: Object.fromEntries(names.map((name) => [name, job({ payload: value })])) });
    const [older, newer] = [queues(["a", "b"]), queues(["b", "c"])];
    const before = await bed.deploy(older);
    await resources.ensure(before, artifactOf(older));
    const row = await bed.redeploy(before, newer);
    // What was read before the change comes late, and changes nothing.
    await Promise.all([
      resources.ensure(row, artifactOf(newer)),
      resources.ensure(before, artifactOf(older)),
    ]);
    const queuesOf = async (artifact: typeof older) =>
      Object.keys((await resources.bindings(row, artifactOf(artifact))).jobs?.queues ?? {});
    expect(await queuesOf(older)).toEqual(["a", "b"]);
    expect(await queuesOf(newer)).toEqual(["b", "c"]);
    // A process that is ahead of its deployment finds no queue that nobody made.
    expect(await queuesOf(queues(["c", "d"]))).toEqual(["c"]);
  });

  it("are bound with the limits that the broker has, not with those of a process of another revision", async () => {
    const bed = await open();
    const resources = bed.resources();
    const row = await bed.deploy(cartsWithHistory);
    await resources.ensure(row, artifactOf(cartsWithHistory));
    expect((await resources.bindings(row, artifactOf(cartsOnly))).kv["carts"]).toMatchObject({ history: 5 });
  });
});

describe("what is not ours", () => {
  const owners = {
    "without a mark": {},
    "of another platform": { "trellis.platform": "other" },
    "of another deployment": { "trellis.deployment": "other" },
  };

  it.each(Object.entries(owners))("%s is refused by name and left as it is", async (_, changes) => {
    const bed = await open();
    const resources = bed.resources();
    await resources.start();
    const row = await bed.deploy(everything);
    const marked = Object.keys(changes).length > 0;
    const metadataOf = (kind: string, alias: string) =>
      marked
        ? {
            "trellis.platform": "platform",
            "trellis.deployment": row.id,
            "trellis.kind": kind,
            "trellis.alias": alias,
            ...changes,
          }
        : {};
    const wanted = wantedResources(row, artifactOf(everything));
    const nameOf = (kind: string) => wanted.find((resource) => resource.kind === kind)?.name ?? "";
    const streams = [`KV_${nameOf("kv")}`, `OBJ_${nameOf("store")}`];
    await bed.manager.streams.add({
      name: streams[0] ?? "",
      subjects: ["a"],
      metadata: metadataOf("kv", "carts"),
    });
    await bed.manager.streams.add({
      name: streams[1] ?? "",
      subjects: ["b"],
      metadata: metadataOf("store", "files"),
    });
    await bed.manager.consumers.add(EVENT_STREAM, {
      durable_name: nameOf("consumer"),
      metadata: metadataOf("consumer", "orders"),
    });
    await bed.admin.request("a", "theirs");
    const failures = await failuresOf(resources.ensure(row, artifactOf(everything)));
    expect(failures.map(({ kind, alias }) => `${kind} ${alias}`)).toEqual([
      "kv carts",
      "store files",
      "consumer orders",
    ]);
    for (const { error } of failures) expect(error).toBeInstanceOf(ForeignResource);
    const left = await bed.manager.streams.info(streams[0] ?? "");
    expect(left).toMatchObject({ config: { subjects: ["a"] }, state: { messages: 1 } });
    // What could be had is there all the same.
    expect((await bed.rows(row)).map(({ kind }) => kind).sort()).toEqual(["dead-letters", "jobs"]);
    expect(await resources.bindings(row, artifactOf(everything), failures)).toMatchObject({
      kv: {},
      store: {},
    });
    for (const [kind, name] of [["kv", nameOf("kv")] as const, ["consumer", nameOf("consumer")] as const]) {
      const theirs = { id: "r", kind, alias: kind === "kv" ? "carts" : "orders", name, spec: "{}" } as const;
      const at = { deploymentId: row.id, state: "detached", createdAt: 1, updatedAt: 1 } as const;
      const audit = { id: "x", at: 1, actor: "a", action: "b", subject: "c" };
      await expect(resources.destroy({ ...theirs, ...at }, audit)).rejects.toBeInstanceOf(ForeignResource);
    }
  });

  it("and has taken the subjects under another name is refused too", async () => {
    const bed = await open();
    const row = await bed.deploy(cartsOnly);
    const [{ name } = { name: "" }] = wantedResources(row, artifactOf(cartsOnly));
    await bed.manager.streams.add({ name: "theirs", subjects: [`$KV.${name}.a`] });
    const [failure] = await failuresOf(bed.resources().ensure(row, artifactOf(cartsOnly)));
    expect(failure?.error).toBeInstanceOf(ForeignResource);
  });
});

describe("failures on the way", () => {
  it("between broker and SQL: what was made is found by its mark, with what is in it", async () => {
    const bed = await open();
    const row = await bed.deploy(cartsOnly);
    await bed.resources().ensure(row, artifactOf(cartsOnly));
    const [{ name, id: rowId } = { name: "", id: "" }] = await bed.rows(row);
    await bed.admin.request(`$KV.${name}.key`, "kept");
    await bed.storage.queries.deleteFrom("resources").where("id", "=", rowId).execute();
    await bed.resources().ensure(row, artifactOf(cartsOnly));
    expect(await bed.rows(row)).toMatchObject([{ alias: "carts", name }]);
    expect((await bed.manager.streams.info(`KV_${name}`)).state.messages).toBe(1);
  });

  it("a broker that lost everything has it again, empty, after the restart, and it is told", async () => {
    const bed = await open();
    const row = await bed.deploy(everything);
    const before = bed.resources();
    await before.start();
    await before.ensure(row, artifactOf(everything));
    for (const name of await bed.streams()) await bed.manager.streams.delete(name);
    const after = bed.resources();
    await after.restore();
    expect(await bed.streams()).toHaveLength(6);
    expect(new Set(bed.warned)).toEqual(new Set(["trellis.resources.lost"]));
  });

  it("one that lost a single bucket has it again at a refresh some time later", async () => {
    const bed = await open();
    const row = await bed.deploy(cartsOnly);
    const resources = bed.resources();
    await resources.ensure(row, artifactOf(cartsOnly));
    const [lost = ""] = await bed.streams();
    await bed.manager.streams.delete(lost);
    bed.now += 61_000;
    await resources.ensure(row, artifactOf(cartsOnly));
    expect(await bed.streams()).toEqual([lost]);
    expect(bed.warned).toEqual(["trellis.resources.lost"]);
  });

  it("detached resources are not made anew", async () => {
    const bed = await open();
    const resources = bed.resources();
    let row = await bed.deploy(cartsOnly);
    await resources.ensure(row, artifactOf(cartsOnly));
    row = await bed.redeploy(row, nothing);
    await resources.ensure(row, artifactOf(nothing));
    for (const name of await bed.streams()) await bed.manager.streams.delete(name);
    await resources.restore();
    expect(await bed.streams()).toEqual([EVENT_STREAM]);
  });

  it("limits of the broker are told in its own words, by alias; what fits is there", async () => {
    const bed = await open();
    const huge = defineService(id, {
      kv: { carts: kv({ value }) },
      store: { files: store({ maxTotal: "999999GiB" }) },
    });
    const row = await bed.deploy(huge);
    const resources = bed.resources();
    const [failure, ...others] = await failuresOf(resources.ensure(row, artifactOf(huge)));
    expect(others).toEqual([]);
    expect(failure).toMatchObject({ kind: "store", alias: "files" });
    expect(failure?.error).toMatchObject({
      name: "BrokerLimit",
      limit: "insufficient storage resources available",
    });
    expect((await resources.bindings(row, artifactOf(huge))).kv).toHaveProperty("carts");
  });

  it("a change that the broker cannot take leaves the old limits, in it and in the bindings", async () => {
    const bed = await open();
    const limited = (maxTotal: "1MiB" | "999999GiB") =>
      defineService(id, { store: { files: store({ maxTotal }) } });
    const resources = bed.resources();
    let row = await bed.deploy(limited("1MiB"));
    await resources.ensure(row, artifactOf(limited("1MiB")));
    row = await bed.redeploy(row, limited("999999GiB"));
    const failures = await failuresOf(resources.ensure(row, artifactOf(limited("999999GiB"))));
    const bound = await resources.bindings(row, artifactOf(limited("999999GiB")), failures);
    expect(bound.store).toMatchObject({ files: { maxTotalBytes: 1_048_576 } });
  });

  it("a broker that does not answer is asked once, not for every resource", async () => {
    const bed = await open("jetstream: disabled");
    const row = await bed.deploy(everything);
    const failures = await failuresOf(bed.resources().ensure(row, artifactOf(everything)));
    expect(failures).toHaveLength(1);
  });
});

describe("destroying", () => {
  it("deletes a resource with what is in it, of every kind, and its row", async () => {
    const bed = await open();
    const resources = bed.resources();
    await resources.start();
    const row = await bed.deploy(everything);
    await resources.ensure(row, artifactOf(everything));
    for (const [index, resource] of (await bed.rows(row)).entries())
      await resources.destroy(resource, {
        id: `a${index}`,
        at: 1,
        actor: "a",
        action: "destroy",
        subject: "s",
      });
    expect(await bed.rows(row)).toEqual([]);
    expect(await bed.streams()).toEqual([EVENT_STREAM]);
    expect((await bed.manager.streams.info(EVENT_STREAM)).state.consumer_count).toBe(0);
    await resources.ensure(row, artifactOf(everything));
    expect(await bed.rows(row)).toHaveLength(5);
  });

  it("of what the broker has lost removes the row", async () => {
    const bed = await open();
    const row = await bed.deploy(cartsOnly);
    const [wanted] = wantedResources(row, artifactOf(cartsOnly));
    if (wanted === undefined) throw new Error("nothing is wanted");
    const { kind, alias, name } = wanted;
    const times = { createdAt: 1, updatedAt: 1 };
    const there = { id: "r", deploymentId: row.id, kind, alias, name, spec: canonicalJson(wanted.spec) };
    await saveResource(bed.storage.queries, { ...there, state: "attached", ...times });
    const [saved] = await bed.rows(row);
    if (saved === undefined) throw new Error("nothing was saved");
    await bed.resources().destroy(saved, { id: "a", at: 1, actor: "a", action: "b", subject: "c" });
    expect(await bed.rows(row)).toEqual([]);
  });
});
