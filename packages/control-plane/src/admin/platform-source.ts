import { newId, type Port, TransportError } from "@trellis/protocol";
import type { BootstrapExchange, BootstrapSource } from "@trellis/runtime/node";
import { type IssueDeps, issue } from "../bootstrap/issue.ts";
import { findDeployment } from "../storage/deployments.ts";
import { findInstanceByKey } from "../storage/instances.ts";
import { platformParticipant } from "./participants.ts";

export interface PlatformSourceDeps {
  port: Port;
  issue: IssueDeps;
  /** What we dial ourselves, which may differ from what others are told. */
  servers: readonly string[];
}

/**
 * The platform's authority for itself: issued and published like any other, but asked for in process, without
 * proofs, since whoever holds this object is the control plane.
 */
export function platformSource(deps: PlatformSourceDeps): BootstrapSource {
  const { port, servers } = deps;
  const { clock, storage, catalog } = deps.issue;
  const answer = async ({ request }: BootstrapExchange) => {
    const { queries } = storage;
    const instance = await findInstanceByKey(queries, request.identityKey);
    const deployment =
      instance === undefined ? undefined : await findDeployment(queries, instance.deploymentId);
    const { id, digest } = platformParticipant;
    const artifact = await catalog.artifact(queries, id, digest);
    if (instance === undefined || deployment === undefined || artifact === undefined)
      throw refused("The platform's own records are missing.");
    const now = clock.now();
    const issued = await issue(
      deps.issue,
      { ...request, requestId: newId(port, now), issuedAt: now },
      { instance, deployment, artifact, digest, platform: true },
    );
    if (issued.isErr()) throw refused(issued.error.denial.message);
    return { ...issued.value, transports: { ...issued.value.transports, tcp: [...servers] } };
  };
  return { bootstrap: answer, refresh: answer };
}

function refused(message: string): TransportError {
  return new TransportError({ code: "trellis.bootstrap.denied", message });
}
