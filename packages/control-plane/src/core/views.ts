import type { Static } from "typebox";
import { platformParticipant } from "../admin/participants.ts";
import type { ConnectionRow } from "../storage/connections.ts";
import type { DeploymentRow } from "../storage/deployments.ts";
import type { InstanceRow } from "../storage/instances.ts";
import type { ParticipantRow } from "../storage/participants.ts";
import type { ConnectionSchema, DeploymentSchema, InstanceSchema, ParticipantSchema } from "./schemas.ts";

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
  const { id, instanceId, deploymentId, participantId, participantDigest, createdAt, updatedAt } = row;
  // The platform's own socket has no user name of ours, so no event tells of it; that we answer tells enough.
  const state = participantId === platformParticipant.id ? "connected" : row.state;
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
