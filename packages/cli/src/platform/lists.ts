import type { CoreClient } from "./connect-core.ts";
import { allPages } from "./pages.ts";

// Whole lists of the platform's own API, for commands that show or search them.

export type ParticipantRow = Awaited<ReturnType<typeof listParticipants>>[number];
export type DeploymentRow = Awaited<ReturnType<typeof listDeployments>>[number];
export type InstanceRow = Awaited<ReturnType<typeof listInstances>>[number];
export type ConnectionRow = Awaited<ReturnType<typeof listConnections>>[number];
export type ApiRow = Awaited<ReturnType<typeof listApis>>[number];

export function listParticipants({ rpc }: CoreClient) {
  return allPages(async (at) => {
    const { participants: rows, ...next } = await rpc.core.participantsList(at).orThrow();
    return { rows, ...next };
  });
}

export function listDeployments({ rpc }: CoreClient) {
  return allPages(async (at) => {
    const { deployments: rows, ...next } = await rpc.core.deploymentsList(at).orThrow();
    return { rows, ...next };
  });
}

/** Instances of one deployment, by id or name, or all. */
export function listInstances({ rpc }: CoreClient, deployment?: string) {
  const filter = deployment === undefined ? {} : { deployment };
  return allPages(async (at) => {
    const { instances: rows, ...next } = await rpc.core.instancesList({ ...at, ...filter }).orThrow();
    return { rows, ...next };
  });
}

export function listConnections({ rpc }: CoreClient) {
  return allPages(async (at) => {
    const { connections: rows, ...next } = await rpc.core.connectionsList(at).orThrow();
    return { rows, ...next };
  });
}

export function listApis({ rpc }: CoreClient) {
  return allPages(async (at) => {
    const { apis: rows, ...next } = await rpc.core.apisList(at).orThrow();
    return { rows, ...next };
  });
}
