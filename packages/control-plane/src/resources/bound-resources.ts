import {
  type KvBinding,
  kvWatchPrefix,
  type ResourceBindings,
  type StoreBinding,
  storeWatchPrefix,
} from "@trellis/protocol";
import { jobsLayout } from "@trellis/protocol/jobs";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import type { DeploymentRow } from "../storage/deployments.ts";
import type { ResourceRow } from "../storage/resources.ts";
import { ForeignResource, type ResourceFailure } from "./resource-errors.ts";
import {
  deadLettersOf,
  type JobsSpec,
  type KvSpec,
  type StoreSpec,
  streamOf,
  type WantedResource,
  wantedOf,
} from "./wanted.ts";

/** The part of signed bindings that says what stands behind the aliases. */
export type BoundResources = Pick<ResourceBindings, "kv" | "store" | "consumers" | "jobs">;

type Declared = Pick<AuthorityArtifact, "kv" | "store" | "consumers" | "jobs">;

/**
 * What stands behind the aliases that a contract declares, out of what the deployment has: limits are those that the
 * broker was told, whatever this revision says, since the deployment may be at another. Pure.
 */
export function boundResources(
  deployment: DeploymentRow,
  declared: Declared,
  { rows, failures }: { rows: readonly ResourceRow[]; failures: readonly ResourceFailure[] },
): BoundResources {
  const bound: { -readonly [K in keyof BoundResources]: BoundResources[K] } = {
    kv: {},
    store: {},
    consumers: {},
    jobs: null,
  };
  const foreign = new Set(
    failures
      .filter(({ error }) => error instanceof ForeignResource)
      .map(({ kind, alias }) => `${kind} ${alias}`),
  );
  const there = rows.filter(({ kind, alias }) => !foreign.has(`${kind} ${alias}`));
  const hasDeadLetters = there.some(({ kind }) => kind === "dead-letters");
  for (const resource of there.map(wantedOf)) {
    if (resource.kind === "consumer" && !hasDeadLetters) continue;
    if (isDeclared(declared, resource)) addTo(bound, { deployment, declared, resource });
  }
  return bound;
}

function isDeclared(declared: Declared, { kind, alias }: WantedResource): boolean {
  if (kind === "jobs") return true;
  if (kind === "dead-letters") return false;
  return Object.hasOwn(declared[kind === "consumer" ? "consumers" : kind], alias);
}

function addTo(
  bound: { -readonly [K in keyof BoundResources]: BoundResources[K] },
  {
    deployment,
    declared,
    resource,
  }: { deployment: DeploymentRow; declared: Declared; resource: WantedResource },
): void {
  const { alias, name } = resource;
  if (resource.kind === "kv") {
    bound.kv[alias] = kvBinding(name, resource.spec);
  } else if (resource.kind === "store") {
    bound.store[alias] = storeBinding(name, resource.spec);
  } else if (resource.kind === "consumer") {
    const deadLetters = deadLettersOf(deployment, alias);
    const { ackWaitMs } = resource.spec;
    bound.consumers[alias] = { stream: streamOf(resource), consumer: name, ackWaitMs, deadLetters };
  } else if (resource.kind === "jobs") {
    const spec = withQueues(resource.spec, Object.keys(declared.jobs));
    if (Object.keys(spec.queues).length > 0) bound.jobs = jobsLayout(spec).binding;
  }
}

/** How a bucket is called and kept. */
export function kvBinding(name: string, { history, ttlMs, maxValueBytes }: KvSpec): KvBinding {
  return { bucket: name, history, ttlMs, maxValueBytes, watch: kvWatchPrefix(name) };
}

/** How an object store is called and kept. */
export function storeBinding(
  name: string,
  { ttlMs, maxObjectBytes, maxTotalBytes }: StoreSpec,
): StoreBinding {
  return { name, ttlMs, maxObjectBytes, maxTotalBytes, watch: storeWatchPrefix(name) };
}

function withQueues(spec: JobsSpec, names: readonly string[]): JobsSpec {
  const queues = Object.entries(spec.queues).filter(([queue]) => names.includes(queue));
  return { ...spec, queues: Object.fromEntries(queues) };
}

/** The first failure without whose resource a contract cannot be had; `undefined` when it can. */
export function blockingFailure(
  declared: Declared,
  bound: BoundResources,
  failures: readonly ResourceFailure[],
): ResourceFailure | undefined {
  return failures.find(({ kind, alias }) => {
    if (kind === "kv" || kind === "store")
      return declared[kind][alias]?.optional === false && !Object.hasOwn(bound[kind], alias);
    if (kind === "jobs") return isMissing(declared.jobs, bound.jobs?.queues ?? {});
    if (kind === "dead-letters") return isMissing(declared.consumers, bound.consumers);
    return declared.consumers[alias]?.optional === false && !Object.hasOwn(bound.consumers, alias);
  });
}

function isMissing(
  wanted: Readonly<Record<string, { readonly optional: boolean }>>,
  bound: Readonly<Record<string, unknown>>,
): boolean {
  return Object.entries(wanted).some(([alias, { optional }]) => !optional && !Object.hasOwn(bound, alias));
}
