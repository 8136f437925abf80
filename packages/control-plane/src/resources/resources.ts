import { JetStreamApiError } from "@nats-io/jetstream";
import { canonicalJson } from "@trellis/contract";
import { newId, type Port } from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import type { Log } from "../config/log.ts";
import { Serial } from "../lifecycle/serial.ts";
import { type DeploymentRow, findDeployment } from "../storage/deployments.ts";
import {
  attachedResources,
  deleteResource,
  findResource,
  type ResourceRow,
  resourcesOf,
  saveResource,
} from "../storage/resources.ts";
import type { AuditEntry, Storage } from "../storage/storage.ts";
import { type BoundResources, boundResources } from "./bound-resources.ts";
import type { OwnedStreams, Owner, Usage } from "./owned-streams.ts";
import { BrokerLimit, ForeignResource, type ResourceFailure, ResourcesFailed } from "./resource-errors.ts";
import { eventStream } from "./stream-config.ts";
import { keepingQueues, type WantedResource, wantedOf, wantedResources } from "./wanted.ts";

export type { BoundResources } from "./bound-resources.ts";

export interface ResourcesDeps {
  readonly port: Port;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly streams: OwnedStreams;
  readonly log: Log;
  /** Fingerprint of the platform's root key: the mark of what is ours. */
  readonly platform: string;
}

/** For how long a deployment that was seen to be in place is taken to be so, ms. */
const trustedMs = 60_000;

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
  /** Deployment and revision that were seen to be in place, and when, since the broker came up. */
  readonly #ensured = new Map<string, { readonly at: number; readonly work: Promise<void> }>();
  /** One thing at a time for each deployment: what comes last must also be done last. */
  readonly #serials = new Map<string, Serial>();

  constructor(deps: ResourcesDeps) {
    this.#deps = deps;
  }

  /** Makes what all deployments share. */
  async start(): Promise<void> {
    this.#ensured.clear();
    await this.#deps.streams.ensureShared(this.#deps.platform, eventStream);
  }

  /**
   * Makes anew what the broker lost, all of it perhaps: the processes of deployments do not ask before they refresh.
   * Called after a start and after every reconnect.
   */
  async restore(): Promise<void> {
    await this.start();
    for (const row of await attachedResources(this.#deps.storage.queries)) {
      await this.#serial(row.deploymentId).run(async () => {
        const now = await findResource(this.#deps.storage.queries, row.id);
        if (now?.state !== "attached") return;
        try {
          await this.#place(wantedOf(now), now);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          this.#warn("not_restored", now, "A resource could not be made anew.");
        }
      });
    }
  }

  /**
   * Makes, changes and detaches until a deployment has what its revision declares. Throws `ResourcesFailed` when that
   * could not be had of some; the others are there then.
   */
  async ensure(deployment: DeploymentRow, artifact: AuthorityArtifact): Promise<void> {
    const key = `${deployment.id} ${deployment.participantDigest}`;
    const known = this.#ensured.get(key);
    const now = this.#deps.clock.now();
    if (known !== undefined && now - known.at < trustedMs) return known.work;
    const work = this.#serial(deployment.id).run(() => this.#bring(deployment, artifact));
    this.#ensured.set(key, { at: now, work });
    try {
      await work;
    } catch (error) {
      if (this.#ensured.get(key)?.work === work) this.#ensured.delete(key);
      throw error;
    }
    // An older revision is looked at again should it come back.
    for (const other of this.#ensured.keys())
      if (other !== key && other.startsWith(`${deployment.id} `)) this.#ensured.delete(other);
  }

  /** What stands behind the aliases of a contract: of any revision, from what the deployment has. */
  async bindings(
    deployment: DeploymentRow,
    artifact: AuthorityArtifact,
    failures: readonly ResourceFailure[] = [],
  ): Promise<BoundResources> {
    const declares = wantedResources(deployment, artifact).length > 0;
    const rows = declares ? await resourcesOf(this.#deps.storage.queries, deployment.id) : [];
    return boundResources(deployment, artifact, { rows, failures });
  }

  /** How much is in a resource; `undefined` when the broker does not have it. */
  usage(row: ResourceRow): Promise<Usage | undefined> {
    return this.#deps.streams.usage(row);
  }

  /** Deletes a resource and everything in it. Throws a `ForeignResource`. */
  destroy(row: ResourceRow, audit: AuditEntry): Promise<void> {
    return this.#serial(row.deploymentId).run(async () => {
      await this.#deps.streams.destroy(this.#owner(row.deploymentId), row);
      await this.#deps.storage.mutate(audit, (tx) => deleteResource(tx, row.id));
      this.#forget(row.deploymentId);
    });
  }

  async #bring(deployment: DeploymentRow, artifact: AuthorityArtifact): Promise<void> {
    const { queries } = this.#deps.storage;
    const present = await findDeployment(queries, deployment.id);
    // Overtaken by another revision, whose resources these must not become.
    if (present?.participantDigest !== deployment.participantDigest) return;
    const rows = await resourcesOf(queries, deployment.id);
    const known = new Map(rows.map((row) => [`${row.kind} ${row.alias}`, row]));
    const failures: ResourceFailure[] = [];
    for (const declared of wantedResources(deployment, artifact)) {
      const { kind, alias } = declared;
      const before = known.get(`${kind} ${alias}`);
      known.delete(`${kind} ${alias}`);
      const wanted = keepingQueues(declared, before);
      try {
        await this.#place(wanted, before, deployment.id);
        await this.#attach(deployment, wanted, before);
      } catch (error) {
        failures.push({ kind, alias, error });
        // A broker that does not answer is not asked for each of them.
        if (!isRefusal(error)) break;
      }
    }
    if (failures.length > 0) throw new ResourcesFailed(failures);
    for (const row of known.values()) await this.#detach(row);
  }

  /** On the broker. */
  async #place(wanted: WantedResource, known: ResourceRow | undefined, deployment = known?.deploymentId) {
    const made = await this.#deps.streams.ensure(this.#owner(deployment ?? ""), wanted);
    if (made && known !== undefined)
      this.#warn("lost", known, "The broker had lost a resource; it was made anew, and is empty.");
  }

  /** In SQL: one row for each resource, with one audit row for each change. */
  async #attach(deployment: DeploymentRow, wanted: WantedResource, known: ResourceRow | undefined) {
    const next = this.#row(deployment, wanted, known);
    if (known?.spec === next.spec && known.state === "attached") return;
    const action = known === undefined ? "create" : known.state === "attached" ? "change" : "attach";
    await this.#deps.storage.mutate(this.#audit(`resource.${action}`, next), (tx) => saveResource(tx, next));
  }

  async #detach(row: ResourceRow): Promise<void> {
    if (row.state === "detached") return;
    const next: ResourceRow = { ...row, state: "detached", updatedAt: this.#deps.clock.now() };
    await this.#deps.storage.mutate(this.#audit("resource.detach", next), (tx) => saveResource(tx, next));
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

  #serial(deployment: string): Serial {
    let serial = this.#serials.get(deployment);
    if (serial === undefined) this.#serials.set(deployment, (serial = new Serial()));
    return serial;
  }

  #forget(deployment: string): void {
    for (const key of this.#ensured.keys()) if (key.startsWith(`${deployment} `)) this.#ensured.delete(key);
  }

  #warn(code: string, { deploymentId, kind, alias }: ResourceRow, message: string): void {
    this.#deps.log.warn(
      { code: `trellis.resources.${code}`, deployment: deploymentId, kind, alias },
      message,
    );
  }

  #audit(action: string, { id, deploymentId, kind, alias }: ResourceRow): AuditEntry {
    const at = this.#deps.clock.now();
    const detail = { deployment: deploymentId, kind, alias };
    return { id: newId(this.#deps.port, at), at, actor: "platform", action, subject: id, detail };
  }
}

/** An answer of the broker about this one resource, as opposed to none. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof ForeignResource || error instanceof BrokerLimit || error instanceof JetStreamApiError
  );
}
