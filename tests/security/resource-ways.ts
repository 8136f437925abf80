import type { NatsConnection } from "@nats-io/transport-node";
import type { ResourceBindings, Signed } from "@trellis/protocol";
import type { TestTrellis } from "@trellis/testing";
import { compilePermissions, storedPolicy } from "../../packages/control-plane/src/authority/policy.ts";
import { mayPublish } from "./broker-probe.ts";

/** What the platform told a participant about its resources. */
export function resourcesOf({ resources }: { readonly resources: Signed }): ResourceBindings {
  return JSON.parse(resources.payload) as ResourceBindings;
}

/** Everything that JetStream offers on a stream and that no application may do, not even with its own. */
export function management(stream: string): string[] {
  return [
    `$JS.API.STREAM.CREATE.${stream}`,
    `$JS.API.STREAM.UPDATE.${stream}`,
    `$JS.API.STREAM.DELETE.${stream}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.API.STREAM.MSG.DELETE.${stream}`,
    `$JS.API.STREAM.SNAPSHOT.${stream}`,
    `$JS.API.STREAM.RESTORE.${stream}`,
    `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.spy`,
    `$JS.API.CONSUMER.CREATE.${stream}.spy.a`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.spy`,
    `$JS.API.CONSUMER.NAMES.${stream}`,
    `$JS.API.CONSUMER.LIST.${stream}`,
    `$JS.API.CONSUMER.INFO.${stream}.spy`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.spy`,
    `$JS.API.CONSUMER.DELETE.${stream}.spy`,
    `$JS.ACK.${stream}.spy.1.1.1.1.0`,
    `$JS.FC.${stream}.spy.a`,
  ];
}

/** What tells which streams there are, and so how they are called. */
export const telling = [
  "$JS.API.INFO",
  "$JS.API.STREAM.NAMES",
  "$JS.API.STREAM.LIST",
  "$JS.API.STREAM.TEMPLATE.NAMES",
  "$JS.API.ACCOUNT.PURGE.APP",
  "$JS.API.META.LEADER.STEPDOWN",
];

/** Those of the subjects on which the broker takes something from the connection. */
export async function openTo(nats: NatsConnection, subjects: readonly string[]): Promise<string[]> {
  const open: string[] = [];
  for (const subject of subjects) if (await mayPublish(nats, subject)) open.push(subject);
  return open;
}

/** What the broker was told that a connection may do with what has this name. */
export async function permissionsAbout(
  trellis: TestTrellis,
  { connection, name }: { readonly connection: string; readonly name: string },
): Promise<{ pub: string[]; sub: string[] }> {
  const { queries } = trellis.controlPlane.plane.storage;
  const { body } = await queries
    .selectFrom("authorizations")
    .innerJoin("contents", "contents.digest", "authorizations.policyDigest")
    .select("contents.body")
    .where("authorizations.connectionId", "=", connection)
    .executeTakeFirstOrThrow();
  const { pub, sub } = compilePermissions(storedPolicy(body), connection);
  const about = (subjects: readonly string[]) => subjects.filter((subject) => subject.includes(name)).sort();
  return { pub: about(pub), sub: about(sub) };
}
