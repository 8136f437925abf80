import { jetstreamManager } from "@nats-io/jetstream";
import { defineService, job, kv } from "@trellis/contract";
import type { JobsBinding } from "@trellis/protocol/jobs";
import type { TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobResources } from "../../packages/control-plane/src/jobs/job-resources.ts";
import { Attacker } from "./attacker.ts";
import { mayPublish, maySubscribe } from "./broker-probe.ts";
import { startScene } from "./scene.ts";

const Page = Type.Object({ page: Type.Integer() });
const press = defineService("acme.press", { jobs: { print: job({ payload: Page }) } });
/** A neighbour with jobs of its own, and so with all that jobs may do. */
const neighbour = defineService("evil.press", {
  jobs: { print: job({ payload: Page }) },
  kv: { notes: kv({ value: Page }) },
});

let trellis: TestTrellis;
let intruder: Attacker;
let victim: JobsBinding;
let own: JobsBinding;

beforeAll(async () => {
  trellis = await startScene();
  const service = await trellis.service(press, ({ jobs }) => jobs.print.handle(() => undefined));
  const ref = await service.jobs.print.create({ page: 1 }).orThrow();
  expect((await ref.wait({ timeout: "10s" }).orThrow()).state).toBe("completed");
  const other = await trellis.service(neighbour, ({ jobs }) => jobs.print.handle(() => undefined));
  intruder = await Attacker.join(trellis, neighbour);
  const { queries } = trellis.controlPlane.plane.storage;
  const bindingOf = async (deployment: string) => (await jobResources(queries, deployment))[0]?.binding;
  const found = [await bindingOf(service.auth.deployment), await bindingOf(other.auth.deployment)];
  const [first, second] = found;
  if (first === undefined || second === undefined) throw new Error("jobs are not provisioned");
  [victim, own] = [first, second];
});
afterAll(async () => {
  await intruder?.close();
  await trellis?.stop();
});

/** What could make, end, see or hand out somebody's jobs. */
function ways({ stream, bucket, queues, deployment, secret }: JobsBinding): string[] {
  const { prefix, work } = queues["print"] ?? { prefix: "", work: { normal: "" } };
  return [
    `${prefix}.j1.created.normal`,
    `${prefix}.j1.completed`,
    `${prefix}.j1.cancelled`,
    `jobwork.v1.${deployment}.print.${secret}.normal.j1`,
    `jobpark.v1.${deployment}.print.${secret}.j1`,
    `jobnotes.v1.${deployment}.print.${secret}.j1.progress`,
    `$KV.${bucket}.print.k.x`,
    `$JS.API.DIRECT.GET.${stream}`,
    `$JS.API.DIRECT.GET.KV_${bucket}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.API.STREAM.INFO.${stream}`,
    `$JS.API.STREAM.PURGE.${stream}`,
    `$JS.API.STREAM.UPDATE.${stream}`,
    `$JS.API.STREAM.DELETE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.spy`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.spy`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${work.normal}`,
    `$JS.API.CONSUMER.PAUSE.${stream}.${work.normal}`,
    `$JS.API.CONSUMER.DELETE.${stream}.${work.normal}`,
    `$JS.ACK.${stream}.${work.normal}.1.1.1.1.0`,
  ];
}

/** What a worker may publish; the others of the list it may not even do to its own jobs. */
const allowed = 9;

describe("jobs of a neighbour", () => {
  it("cannot be made, ended, seen or taken by a service that has jobs itself", async () => {
    const open: string[] = [];
    for (const subject of ways(victim)) if (await mayPublish(intruder.nats, subject)) open.push(subject);
    expect(open).toEqual([]);
  });

  it("cannot be listened to", async () => {
    const { deployment, secret } = victim;
    const live = [
      `joblive.v1.${deployment}.print.${secret}.>`,
      "joblive.v1.>",
      "jobs.v1.>",
      "jobupdates.v1.>",
    ];
    const open: string[] = [];
    for (const subject of live) if (await maySubscribe(intruder.nats, subject)) open.push(subject);
    expect(open).toEqual([]);
  });

  it("leave no way to make or change streams, not even one's own", async () => {
    const subjects = ways(own);
    const found: string[] = [];
    for (const subject of subjects.slice(allowed, -4))
      if (await mayPublish(intruder.nats, subject)) found.push(subject);
    expect(found).toEqual([]);
    for (const subject of subjects.slice(0, 2)) expect(await mayPublish(intruder.nats, subject)).toBe(true);
  });

  it("are as they were after all of that", async () => {
    const manager = await jetstreamManager(trellis.controlPlane.plane.links.app, { checkAPI: false });
    const { state } = await manager.streams.info(victim.stream, { subjects_filter: "jobs.v1.>" });
    expect(Object.keys(state.subjects ?? {})).toHaveLength(2);
    expect(Object.keys(state.subjects ?? {}).some((subject) => subject.includes(".j1."))).toBe(false);
  });
});
