import {
  deadLetterPrefix,
  deadLetterStream,
  EVENT_STREAM,
  eventFilter,
  fromBase64Url,
  replaySubject,
  resourceName,
  toHex,
} from "@trellis/protocol";
import { type JobsLayoutInput, jobsLayout } from "@trellis/protocol/jobs";
import { type AuthorityArtifact, eventOf } from "../authority/artifact.ts";
import type { DeploymentRow } from "../storage/deployments.ts";
import type { ResourceRow } from "../storage/resources.ts";

/** What a contract may ask for, and what a deployment then has. */
export type ResourceKind = "kv" | "store" | "consumer" | "dead-letters" | "jobs";

export type KvSpec = AuthorityArtifact["kv"][string];
export type StoreSpec = AuthorityArtifact["store"][string];
/** A consumer as the broker needs it: the filters in place of the events, which also need their parameters. */
export interface ConsumerSpec {
  readonly filters: readonly string[];
  readonly replay: AuthorityArtifact["consumers"][string]["replay"];
  readonly ackWaitMs: number;
  readonly ordering: "none" | "per-key";
}

/** The jobs of a deployment: one stream, one bucket, and the consumers of its queues. */
export type JobsSpec = Pick<JobsLayoutInput, "deployment" | "service" | "secret" | "queues">;

/** A resource that a deployment is to have. */
export type WantedResource = { readonly alias: string; readonly name: string } & (
  | { readonly kind: "kv"; readonly spec: KvSpec }
  | { readonly kind: "store"; readonly spec: StoreSpec }
  | { readonly kind: "consumer"; readonly spec: ConsumerSpec }
  | { readonly kind: "dead-letters"; readonly spec: Readonly<Record<string, never>> }
  | { readonly kind: "jobs"; readonly spec: JobsSpec }
);

type Resourceful = Pick<AuthorityArtifact, "implements" | "uses" | "kv" | "store" | "consumers" | "jobs">;
type Deployed = Pick<DeploymentRow, "id" | "name" | "secret">;

/** The bits that make the names of a deployment's resources unguessable, as they stand in those names. */
export function secretOf(deployment: Pick<DeploymentRow, "secret">): string {
  return toHex(fromBase64Url(deployment.secret) ?? new Uint8Array());
}

/** Everything that a contract declares, by its physical name in one deployment. Pure. */
export function wantedResources(deployment: Deployed, artifact: Resourceful): WantedResource[] {
  const secret = secretOf(deployment);
  const wanted: WantedResource[] = [];
  for (const [alias, spec] of Object.entries(artifact.kv))
    wanted.push({ kind: "kv", alias, name: resourceName(secret, alias), spec });
  for (const [alias, spec] of Object.entries(artifact.store))
    wanted.push({ kind: "store", alias, name: resourceName(secret, alias), spec });
  const consumers = Object.entries(artifact.consumers);
  if (consumers.length > 0)
    wanted.push({ kind: "dead-letters", alias: "", name: deadLetterStream(secret), spec: {} });
  for (const [alias, { events, replay, ackWaitMs, ordering }] of consumers) {
    const name = resourceName(secret, alias);
    const filters = [...events.map((event) => filterOf(artifact, event)).sort(), replaySubject(name)];
    wanted.push({ kind: "consumer", alias, name, spec: { filters, replay, ackWaitMs, ordering } });
  }
  const queues = Object.entries(artifact.jobs);
  if (queues.length > 0) {
    const { id, name: service } = deployment;
    const spec: JobsSpec = {
      deployment: id,
      service,
      secret,
      queues: Object.fromEntries(
        queues.map(([alias, { ackWaitMs, dedupHorizonMs }]) => [alias, { ackWaitMs, dedupHorizonMs }]),
      ),
    };
    wanted.push({ kind: "jobs", alias: "", name: jobsLayout(spec).stream.name, spec });
  }
  return wanted;
}

/** What a row says that a deployment has: as the broker was told it. */
export function wantedOf({ kind, alias, name, spec }: ResourceRow): WantedResource {
  return { kind, alias, name, spec: JSON.parse(spec) };
}

/**
 * What is wanted, beside what is there already: queues that are no longer declared stay, since there may be jobs in
 * them, and processes of an older revision that work on them.
 */
export function keepingQueues(wanted: WantedResource, known: ResourceRow | undefined): WantedResource {
  if (wanted.kind !== "jobs" || known === undefined) return wanted;
  const before = wantedOf(known);
  if (before.kind !== "jobs") return wanted;
  return { ...wanted, spec: { ...wanted.spec, queues: { ...before.spec.queues, ...wanted.spec.queues } } };
}

/** Where a deployment's consumer leaves what it cannot handle. */
export function deadLettersOf(deployment: Pick<DeploymentRow, "secret">, alias: string): string {
  return deadLetterPrefix(secretOf(deployment), alias);
}

/** The broker stream behind a resource. */
export function streamOf({ kind, name }: { kind: ResourceKind; name: string }): string {
  if (kind === "kv") return `KV_${name}`;
  if (kind === "store") return `OBJ_${name}`;
  return kind === "consumer" ? EVENT_STREAM : name;
}

type EventName = AuthorityArtifact["consumers"][string]["events"][number];

/** An artifact is read only if its consumers name events that it implements or uses. */
function filterOf(artifact: Pick<Resourceful, "implements" | "uses">, { api, event }: EventName): string {
  const { params } = eventOf(artifact, { api, event }) ?? { params: [] };
  return eventFilter({ api, action: event, params: params.map(() => undefined) });
}
