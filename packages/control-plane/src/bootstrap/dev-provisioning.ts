import type { BootstrapRequest } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import { cliParticipant } from "../admin/participants.ts";
import { type InstallableArtifact, readArtifact } from "../authority/artifact.ts";
import type { Actor, Installer } from "../authority/installer.ts";
import { isPlatformOwned } from "../authority/platform-access.ts";
import { Serial } from "../lifecycle/serial.ts";
import { type DeploymentRow, deploymentsOf } from "../storage/deployments.ts";
import type { InstanceRow } from "../storage/instances.ts";
import { findParticipant, findParticipantByDigest, type ParticipantRow } from "../storage/participants.ts";
import type { Storage } from "../storage/storage.ts";
import { type Refusal, refusal } from "./refusal.ts";

export interface DevProvisioningDeps {
  storage: Storage;
  installer: Installer;
  /** Hash of the dev token: what it installed, only it replaces. */
  owner: string;
  /** Says one step to the person in front of the terminal. */
  say(step: string): void;
}

/**
 * Dev mode's shortcut: whoever holds the token is installed and provisioned as it comes. One request at a
 * time, since two replicas of one service start together.
 */
export class DevProvisioning {
  readonly #deps: DevProvisioningDeps;
  readonly #actor: Actor;
  readonly #serial = new Serial();

  constructor(deps: DevProvisioningDeps) {
    this.#deps = deps;
    this.#actor = { name: "dev", owner: deps.owner };
  }

  /** Installs the participant if need be, deploys it, and adds an instance for the identity key. */
  provision(request: BootstrapRequest): Promise<Result<InstanceRow, Refusal>> {
    return this.#serial.run(async () => {
      const installed = await this.#install(request);
      if (installed.isErr()) return err(installed.error);
      const deployment = await this.#deploy(installed.value);
      if (deployment.isErr()) return err(deployment.error);
      const name = request.name ?? installed.value.id;
      const { identityKey } = request;
      const instance = await this.#deps.installer.provision(
        { deployment: deployment.value, identityKey, name, ephemeral: true },
        this.#actor,
      );
      if (instance.isErr()) return err(refusal("trellis.bootstrap.denied"));
      if (!isPlatformOwned(installed.value.id))
        this.#deps.say(`provisioned an instance of ${deployment.value.name}`);
      return ok(instance.value);
    });
  }

  /** Replaces the revision that a deployment runs by the one that the process was built with. */
  replace(request: BootstrapRequest, deployment: DeploymentRow): Promise<Result<DeploymentRow, Refusal>> {
    return this.#serial.run(async () => {
      const installed = await this.#install(request);
      if (installed.isErr()) return err(installed.error);
      return ok(await this.#redeploy(deployment, installed.value));
    });
  }

  async #install(request: BootstrapRequest): Promise<Result<ParticipantRow, Refusal>> {
    const { id, digest } = request.participant;
    const current = await findParticipant(this.#deps.storage.queries, id);
    // The command line's participant is installed by the platform; the token's holder may be an instance of it.
    if (id === cliParticipant.id && current?.digest === digest) return ok(current);
    if (current !== undefined && current.owner !== this.#deps.owner) {
      const hint = `${id} was installed by somebody else; this token cannot take it over.`;
      return err(refusal("trellis.bootstrap.denied", { hint }));
    }
    if (current?.digest === digest) return ok(current);
    const installable = await this.#installable(request);
    if (installable.isErr()) return err(installable.error);
    const { row } = await this.#deps.installer.install(installable.value, this.#actor);
    this.#deps.say(current === undefined ? `installed ${id}` : `installed revision ${row.revision} of ${id}`);
    return ok(row);
  }

  /** The artifact that was sent, or the same one as installed before. */
  async #installable(request: BootstrapRequest): Promise<Result<InstallableArtifact, Refusal>> {
    const { id, digest, artifact } = request.participant;
    const earlier = await findParticipantByDigest(this.#deps.storage.queries, id, digest);
    const value: unknown = earlier === undefined ? artifact : JSON.parse(earlier.artifact);
    if (value === undefined) return err(refusal("trellis.bootstrap.artifact_required"));
    const read = readArtifact(value);
    if (read.isErr()) return err(refusal("trellis.bootstrap.invalid_request", { hint: read.error }));
    if (read.value.digest !== digest || read.value.artifact.id !== id) {
      const hint = "The artifact is not the one of this id and digest.";
      return err(refusal("trellis.bootstrap.invalid_request", { hint }));
    }
    return ok(read.value);
  }

  async #deploy(participant: ParticipantRow): Promise<Result<DeploymentRow, Refusal>> {
    const all = await deploymentsOf(this.#deps.storage.queries, participant.id);
    const own = all.find((row) => row.name === participant.id) ?? (all.length === 1 ? all[0] : undefined);
    if (own !== undefined) return ok(await this.#redeploy(own, participant));
    if (all.length > 1) {
      const hint = `${participant.id} has several deployments: provision an instance of one of them.`;
      return err(refusal("trellis.bootstrap.denied", { hint }));
    }
    const created = await this.#deps.installer.deploy(participant, participant.id, this.#actor);
    return created.isErr() ? err(refusal("trellis.bootstrap.denied")) : ok(created.value);
  }

  async #redeploy(deployment: DeploymentRow, participant: ParticipantRow): Promise<DeploymentRow> {
    if (deployment.participantDigest === participant.digest) return deployment;
    return this.#deps.installer.redeploy(deployment, participant.digest, this.#actor);
  }
}
