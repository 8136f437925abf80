import type { Static } from "typebox";
import type { ConnectionRow } from "../storage/connections.ts";
import type { DeploymentRow } from "../storage/deployments.ts";
import type { InstanceRow } from "../storage/instances.ts";
import type { ParticipantRow } from "../storage/participants.ts";
import type { ConnectionSchema, DeploymentSchema, InstanceSchema, ParticipantSchema } from "./api.ts";

// What of a row an administrator sees. Secret bits, session keys and sockets are not part of it.

export function participantView(row: ParticipantRow): Static<typeof ParticipantSchema> {
  const { id, revision, digest, kind, installedAt } = row;
  return { id, revision, digest, kind, installedAt };
}

export function deploymentView(row: DeploymentRow): Static<typeof DeploymentSchema> {
  const { id, name, participantId, participantDigest, disabled, epoch, createdAt } = row;
  const participant = { id: participantId, digest: participantDigest };
  return { id, name, participant, disabled: disabled === 1, epoch, createdAt };
}

export function instanceView(row: InstanceRow): Static<typeof InstanceSchema> {
  const { id, deploymentId, identityKey, name, disabled, ephemeral, createdAt } = row;
  return {
    id,
    deployment: deploymentId,
    identityKey,
    name,
    disabled: disabled === 1,
    ephemeral: ephemeral === 1,
    createdAt,
  };
}

export function connectionView(row: ConnectionRow): Static<typeof ConnectionSchema> {
  const { id, instanceId, deploymentId, participantId, participantDigest, state, createdAt, updatedAt } = row;
  return {
    id,
    instance: instanceId,
    deployment: deploymentId,
    participant: { id: participantId, digest: participantDigest },
    state,
    createdAt,
    updatedAt,
  };
}
