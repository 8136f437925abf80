import { canonicalJson } from "@trellis/contract";
import { kvWatchPrefix, newId, type Port, type ResourceBindings, storeWatchPrefix } from "@trellis/protocol";
import { jobsLayout } from "@trellis/protocol/jobs";
import type { Clock } from "@trellis/runtime/node";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import type { DeploymentRow } from "../storage/deployments.ts";
import { deleteResource, type ResourceRow, resourcesOf, saveResource } from "../storage/resources.ts";
import type { AuditEntry, Storage } from "../storage/storage.ts";
import type { OwnedStreams, Owner } from "./owned-streams.ts";
import { eventStream } from "./stream-config.ts";
import { deadLettersOf, streamOf, type WantedResource, wantedResources } from "./wanted.ts";

export interface ResourcesDeps {
  readonly port: Port;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly streams: OwnedStreams;
  /** Fingerprint of the platform's root key: the mark of what is ours. */
  readonly platform: string;
}

/** The part of signed bindings that says what stands behind the aliases. */
export type BoundResources = Pick<ResourceBindings, "kv" | "store" | "consumers" | "jobs">;

/**
 * The resources of deployments: made when a deployment needs them, kept when it no longer declares them, destroyed
 * only by an administrator.
 *
 * Invariants:
 * P1. The broker comes first, SQL second: what has a row exists, and what was made before a crash is found by its mark.
 * P2. Nothing of a detached resource is touched; declaring it again attaches it with everything in it.
 * P3. Only the deployment's own revision changes its resources; a process of another revision gets what is there.
 */
export class Resources {
  readonly #deps: ResourcesDeps;
  /** Deployment and revision that are known to be in place since the broker was last seen to come up. */
  readonly #ensured = new Map<string, Promise<void>>();

  constructor(deps: ResourcesDeps) {
    this.#deps = deps;
  }

  /** Makes what all deployments share. Called at start and after every reconnect: the broker may have lost everything. */
  async start(): Promise<void> {
    this.#ensured.clear();
    await this.#deps.streams.ensureShared(this.#deps.platform, eventStream);
  }

  /** Makes, changes and detaches until a deployment has what its revision declares. Throws a `ForeignResource`. */
  async ensure(deployment: DeploymentRow, artifact: AuthorityArtifact): Promise<void> {
    const key = `${deployment.id} ${deployment.participantDigest}`;
    const known = this.#ensured.get(key);
    if (known !== undefined) return known;
    const work = this.#bring(deployment, artifact);
    this.#ensured.set(key, work);
    try {
      await work;
    } catch (error) {
      if (this.#ensured.get(key) === work) this.#ensured.delete(key);
      throw error;
    }
    // An older revision is looked at again should it come back.
    for (const other of this.#ensured.keys())
      if (other !== key && other.startsWith(`${deployment.id} `)) this.#ensured.delete(other);
  }

  /** What stands behind the aliases of a contract: of any revision, from what the deployment has. */
  async bindings(deployment: DeploymentRow, artifact: AuthorityArtifact): Promise<BoundResources> {
    const wanted = wantedResources(deployment, artifact);
    if (wanted.length === 0) return { kv: {}, store: {}, consumers: {}, jobs: null };
    const rows = await resourcesOf(this.#deps.storage.queries, deployment.id);
    const there = new Set(rows.map(({ kind, alias }) => `${kind} ${alias}`));
    return bind(
      deployment,
      wanted.filter(({ kind, alias }) => there.has(`${kind} ${alias}`)),
    );
  }

  /** Deletes a resource and everything in it. */
  async destroy(row: ResourceRow, audit: AuditEntry): Promise<void> {
    await this.#deps.streams.destroy(this.#owner(row.deploymentId), row);
    await this.#deps.storage.mutate(audit, (tx) => deleteResource(tx, row.id));
    for (const key of this.#ensured.keys())
      if (key.startsWith(`${row.deploymentId} `)) this.#ensured.delete(key);
  }

  async #bring(deployment: DeploymentRow, artifact: AuthorityArtifact): Promise<void> {
    const { storage, streams } = this.#deps;
    const wanted = wantedResources(deployment, artifact);
    const rows = await resourcesOf(storage.queries, deployment.id);
    if (wanted.length === 0 && rows.length === 0) return;
    const owner = this.#owner(deployment.id);
    for (const resource of wanted) await streams.ensure(owner, resource);
    await this.#record(deployment, wanted, rows);
  }

  /** One row for each resource, with one audit row for each change. */
  async #record(
    deployment: DeploymentRow,
    wanted: readonly WantedResource[],
    rows: readonly ResourceRow[],
  ): Promise<void> {
    const { storage } = this.#deps;
    const before = new Map(rows.map((row) => [`${row.kind} ${row.alias}`, row]));
    for (const resource of wanted) {
      const known = before.get(`${resource.kind} ${resource.alias}`);
      before.delete(`${resource.kind} ${resource.alias}`);
      const next = this.#row(deployment, resource, known);
      if (known?.spec === next.spec && known.state === "attached") continue;
      const action = known === undefined ? "create" : known.state === "attached" ? "change" : "attach";
      await storage.mutate(this.#audit(`resource.${action}`, next), (tx) => saveResource(tx, next));
    }
    for (const row of before.values()) {
      if (row.state === "detached") continue;
      const next: ResourceRow = { ...row, state: "detached", updatedAt: this.#deps.clock.now() };
      await storage.mutate(this.#audit("resource.detach", next), (tx) => saveResource(tx, next));
    }
  }

  #row(deployment: DeploymentRow, resource: WantedResource, known: ResourceRow | undefined): ResourceRow {
    const now = this.#deps.clock.now();
    return {
      id: known?.id ?? newId(this.#deps.port, now),
      deploymentId: deployment.id,
      kind: resource.kind,
      alias: resource.alias,
      name: resource.name,
      spec: canonicalJson(resource.spec),
      state: "attached",
      createdAt: known?.createdAt ?? now,
      updatedAt: now,
    };
  }

  #owner(deployment: string): Owner {
    return { platform: this.#deps.platform, deployment };
  }

  #audit(action: string, { id, deploymentId, kind, alias }: ResourceRow): AuditEntry {
    const at = this.#deps.clock.now();
    const detail = { deployment: deploymentId, kind, alias };
    return { id: newId(this.#deps.port, at), at, actor: "platform", action, subject: id, detail };
  }
}

function bind(deployment: DeploymentRow, resources: readonly WantedResource[]): BoundResources {
  const bound: { -readonly [K in keyof BoundResources]: BoundResources[K] } = {
    kv: {},
    store: {},
    consumers: {},
    jobs: null,
  };
  for (const resource of resources) {
    const { alias, name } = resource;
    if (resource.kind === "kv") {
      const { history, ttlMs, maxValueBytes } = resource.spec;
      bound.kv[alias] = { bucket: name, history, ttlMs, maxValueBytes, watch: kvWatchPrefix(name) };
    } else if (resource.kind === "store") {
      const { ttlMs, maxObjectBytes, maxTotalBytes } = resource.spec;
      bound.store[alias] = { name, ttlMs, maxObjectBytes, maxTotalBytes, watch: storeWatchPrefix(name) };
    } else if (resource.kind === "consumer") {
      const deadLetters = deadLettersOf(deployment, alias);
      const { ackWaitMs } = resource.spec;
      bound.consumers[alias] = { stream: streamOf(resource), consumer: name, ackWaitMs, deadLetters };
    } else if (resource.kind === "jobs") {
      bound.jobs = jobsLayout(resource.spec).binding;
    }
  }
  return bound;
}
