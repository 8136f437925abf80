import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { canonicalJson, type Participant } from "@trellis/contract";
import { toBase64Url } from "@trellis/protocol";
import { type Clock, nodePort } from "@trellis/runtime/node";
import { startNats, type TestNats } from "@trellis/testing";
import { type AuthorityArtifact, storedArtifact } from "../authority/artifact.ts";
import type { Log } from "../config/log.ts";
import { type DeploymentRow, insertDeployment, setDeploymentDigest } from "../storage/deployments.ts";
import { type ResourceRow, resourcesOf } from "../storage/resources.ts";
import { Storage } from "../storage/storage.ts";
import { OwnedStreams } from "./owned-streams.ts";
import { Resources } from "./resources.ts";

/** A broker with everything allowed, a database, and what provisions on them: without a control plane around it. */
export class Bed implements AsyncDisposable {
  readonly nats: TestNats;
  readonly admin: NatsConnection;
  readonly manager: JetStreamManager;
  readonly storage: Storage;
  /** Codes of what was logged. */
  readonly warned: unknown[] = [];
  now = 1_900_000_000_000;
  #made = 0;

  private constructor(parts: Pick<Bed, "nats" | "admin" | "manager" | "storage">) {
    this.nats = parts.nats;
    this.admin = parts.admin;
    this.manager = parts.manager;
    this.storage = parts.storage;
  }

  static async open(config?: string): Promise<Bed> {
    const nats = await startNats(config === undefined ? {} : { config });
    const admin = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
    const manager = await jetstreamManager(admin, { checkAPI: false });
    return new Bed({ nats, admin, manager, storage: await Storage.open(":memory:") });
  }

  /** Another control plane over the same broker and database, or one of another platform. */
  resources(platform = "platform"): Resources {
    const warn: Log["warn"] = ({ code }) => void this.warned.push(code);
    const log: Log = { debug() {}, info() {}, warn, error: warn };
    const clock: Clock = { now: () => this.now, monotonic: () => this.now };
    const streams = new OwnedStreams(async () => this.manager, 1);
    return new Resources({ port: nodePort, clock, storage: this.storage, streams, log, platform });
  }

  async deploy(participant: Participant, changes: Partial<DeploymentRow> = {}): Promise<DeploymentRow> {
    this.#made += 1;
    const row: DeploymentRow = {
      id: `d${this.#made}`,
      name: `${participant.id}-${this.#made}`,
      participantId: participant.id,
      participantDigest: participant.digest,
      disabled: 0,
      epoch: 1,
      previousEpoch: null,
      previousUntil: null,
      secret: toBase64Url(nodePort.random(16)),
      createdAt: this.now,
      ...changes,
    };
    await insertDeployment(this.storage.queries, row);
    return row;
  }

  async redeploy(row: DeploymentRow, participant: Participant): Promise<DeploymentRow> {
    await setDeploymentDigest(this.storage.queries, row.id, participant.digest);
    return { ...row, participantDigest: participant.digest };
  }

  rows({ id }: DeploymentRow): Promise<ResourceRow[]> {
    return resourcesOf(this.storage.queries, id);
  }

  /** What the audit tells, in order. */
  async actions(): Promise<string[]> {
    const rows = await this.storage.queries.selectFrom("audit").select("action").execute();
    return rows.map(({ action }) => action);
  }

  async streams(): Promise<string[]> {
    const names: string[] = [];
    for await (const name of this.manager.streams.names()) names.push(name);
    return names.sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin.close();
    await this.nats.stop();
    await this.storage.close();
  }
}

/** The contract of a participant as the control plane reads it. */
export function artifactOf(participant: Participant): AuthorityArtifact {
  return storedArtifact(canonicalJson(participant.artifact));
}
