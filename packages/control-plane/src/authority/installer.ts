import { isParticipantId } from "@trellis/contract";
import { newId, type Port, toBase64Url } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { Clock } from "@trellis/runtime/node";
import type { NoticeOutbox } from "../notices/outbox.ts";
import {
  type DeploymentRow,
  findDeploymentByName,
  insertDeployment,
  setDeploymentDigest,
  setDeploymentDisabled,
} from "../storage/deployments.ts";
import { findInstanceByKey, type InstanceRow, insertInstance } from "../storage/instances.ts";
import { findParticipant, insertParticipant, type ParticipantRow } from "../storage/participants.ts";
import type { AuditEntry, Storage } from "../storage/storage.ts";
import type { InstallableArtifact } from "./artifact.ts";

export interface InstallerDeps {
  port: Port;
  clock: Clock;
  storage: Storage;
  outbox: NoticeOutbox;
}

/** Who does it: for the audit row, and, in dev mode, whose participants they become. */
export interface Actor {
  name: string;
  /** Hash of a dev token, or null for an administrator. */
  owner: string | null;
}

/**
 * Installs participants, deploys them and provisions instances. Each is one mutation; whatever changes which
 * APIs are provided is announced by the deployment's route notice, so that waiting callers ask again.
 */
export class Installer {
  readonly #deps: InstallerDeps;

  constructor(deps: InstallerDeps) {
    this.#deps = deps;
  }

  /** Adds a revision, unless the current one has the same digest. */
  async install(
    installable: InstallableArtifact,
    actor: Actor,
  ): Promise<{ row: ParticipantRow; changed: boolean }> {
    const { id, kind } = installable.artifact;
    const { storage, clock } = this.#deps;
    const current = await findParticipant(storage.queries, id);
    if (current?.digest === installable.digest) return { row: current, changed: false };
    const audit = this.#audit(actor, "participant.install", id, { digest: installable.digest });
    const row = await storage.mutate(audit, async (tx) => {
      const before = await findParticipant(tx, id);
      const next: ParticipantRow = {
        id,
        revision: (before?.revision ?? 0) + 1,
        digest: installable.digest,
        kind,
        artifact: installable.text,
        owner: actor.owner,
        installedAt: clock.now(),
      };
      await insertParticipant(tx, next);
      return next;
    });
    return { row, changed: true };
  }

  /** Creates a deployment of an installed participant. Its id is its own: names can be long, subjects not. */
  async deploy(
    participant: ParticipantRow,
    name: string,
    actor: Actor,
  ): Promise<Result<DeploymentRow, "name_taken" | "name_illegal">> {
    if (!isParticipantId(name)) return err("name_illegal");
    const { storage, clock, port, outbox } = this.#deps;
    const now = clock.now();
    const row: DeploymentRow = {
      id: newId(port, now),
      name,
      participantId: participant.id,
      participantDigest: participant.digest,
      disabled: 0,
      epoch: 1,
      previousEpoch: null,
      previousUntil: null,
      secret: toBase64Url(port.random(16)),
      createdAt: now,
    };
    const audit = this.#audit(actor, "deployment.create", row.id, { name, participant: participant.id });
    const created = await storage.mutate(audit, async (tx): Promise<Result<DeploymentRow, "name_taken">> => {
      if ((await findDeploymentByName(tx, name)) !== undefined) return err("name_taken");
      await insertDeployment(tx, row);
      await outbox.addRoute(tx, row.id);
      return ok(row);
    });
    await outbox.flush();
    return created;
  }

  /** Points a deployment at another installed revision of its participant. */
  async redeploy(deployment: DeploymentRow, digest: string, actor: Actor): Promise<DeploymentRow> {
    const audit = this.#audit(actor, "deployment.update", deployment.id, { digest });
    const { storage, outbox } = this.#deps;
    await storage.mutate(audit, async (tx) => {
      await setDeploymentDigest(tx, deployment.id, digest);
      await outbox.addRoute(tx, deployment.id);
    });
    await outbox.flush();
    return { ...deployment, participantDigest: digest };
  }

  /** Lets a disabled deployment serve again. */
  async enable(deployment: DeploymentRow, actor: Actor): Promise<DeploymentRow> {
    const { storage, outbox } = this.#deps;
    await storage.mutate(this.#audit(actor, "deployment.enable", deployment.id), async (tx) => {
      await setDeploymentDisabled(tx, deployment.id, false);
      await outbox.addRoute(tx, deployment.id);
    });
    await outbox.flush();
    return { ...deployment, disabled: 0 };
  }

  /** Adds an instance that proves itself by an identity key, of which only the public half is known here. */
  async provision(
    input: { deployment: DeploymentRow; identityKey: string; name: string; ephemeral: boolean },
    actor: Actor,
  ): Promise<Result<InstanceRow, "identity_taken">> {
    const { storage, clock, port } = this.#deps;
    const now = clock.now();
    const row: InstanceRow = {
      id: newId(port, now),
      deploymentId: input.deployment.id,
      identityKey: input.identityKey,
      name: input.name,
      disabled: 0,
      ephemeral: input.ephemeral ? 1 : 0,
      createdAt: now,
    };
    const audit = this.#audit(actor, "instance.provision", row.id, {
      deployment: input.deployment.id,
      name: input.name,
    });
    return storage.mutate(audit, async (tx): Promise<Result<InstanceRow, "identity_taken">> => {
      if ((await findInstanceByKey(tx, input.identityKey)) !== undefined) return err("identity_taken");
      await insertInstance(tx, row);
      return ok(row);
    });
  }

  #audit(actor: Actor, action: string, subject: string, detail: AuditEntry["detail"] = {}): AuditEntry {
    const at = this.#deps.clock.now();
    return { id: newId(this.#deps.port, at), at, actor: actor.name, action, subject, detail };
  }
}
