import { type AnyParticipant, canonicalJson } from "@trellis/contract";
import { toBase64Url } from "@trellis/protocol";
import { storedArtifact } from "../authority/artifact.ts";
import type { Actor, Installer } from "../authority/installer.ts";
import { type DeploymentRow, findDeploymentByName } from "../storage/deployments.ts";
import { findInstanceByKey, type InstanceRow } from "../storage/instances.ts";
import type { Storage } from "../storage/storage.ts";
import { cliParticipant, platformParticipant } from "./participants.ts";

export interface PlatformRecordsDeps {
  storage: Storage;
  installer: Installer;
}

const actor: Actor = { name: "platform", owner: null };

/**
 * Sees to it that the platform's own participants stand in the tables, in the revision of this version, each
 * with one deployment of its own name. Their ids are kept: they are made once, at the first start.
 */
export async function ensurePlatformRecords(
  deps: PlatformRecordsDeps,
  identityKey: Uint8Array,
): Promise<{ deployment: DeploymentRow; instance: InstanceRow }> {
  await ensureDeployment(deps, cliParticipant);
  const deployment = await ensureDeployment(deps, platformParticipant);
  const key = toBase64Url(identityKey);
  const known = await findInstanceByKey(deps.storage.queries, key);
  if (known !== undefined) return { deployment, instance: known };
  const wanted = { deployment, identityKey: key, name: deployment.name, ephemeral: false };
  return { deployment, instance: (await deps.installer.provision(wanted, actor)).mapErr(inWords).orThrow() };
}

/** The deployment of one of the platform's participants, at this version's revision. */
export async function ensureDeployment(
  { storage, installer }: PlatformRecordsDeps,
  participant: AnyParticipant,
): Promise<DeploymentRow> {
  const text = canonicalJson(participant.artifact);
  const installable = { artifact: storedArtifact(text), text, digest: participant.digest };
  const { row } = await installer.install(installable, actor);
  const known = await findDeploymentByName(storage.queries, participant.id);
  if (known === undefined)
    return (await installer.deploy(row, participant.id, actor)).mapErr(inWords).orThrow();
  return known.participantDigest === row.digest ? known : installer.redeploy(known, row.digest, actor);
}

function inWords(problem: string): Error {
  return new Error(`The platform could not install itself: ${problem}.`);
}
