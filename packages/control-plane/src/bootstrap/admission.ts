import { err, ok, type Result } from "@trellis/result";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import type { Catalog } from "../authority/catalog.ts";
import { findConnection } from "../storage/connections.ts";
import { type DeploymentRow, findDeployment } from "../storage/deployments.ts";
import { findInstanceByKey, type InstanceRow } from "../storage/instances.ts";
import type { Storage } from "../storage/storage.ts";
import type { AuthenticatedCall } from "./authenticate.ts";
import type { DevProvisioning } from "./dev-provisioning.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** Who may connect as what. */
export interface Admitted {
  instance: InstanceRow;
  deployment: DeploymentRow;
  artifact: AuthorityArtifact;
  /** The digest that the process runs. */
  digest: string;
  /** The platform itself, which is admitted by nobody but itself. */
  platform?: boolean;
}

export interface AdmissionDeps {
  storage: Storage;
  catalog: Catalog;
  /** Dev mode only: installs and provisions what is unknown. */
  dev: DevProvisioning | undefined;
}

/** Finds the instance of an authenticated identity and checks that it may run this participant. */
export async function admit(
  deps: AdmissionDeps,
  call: AuthenticatedCall,
): Promise<Result<Admitted, Refusal>> {
  const { storage, dev } = deps;
  const known = await findInstanceByKey(storage.queries, call.request.identityKey);
  if (known !== undefined) return admitKnown(deps, call, known);
  if (dev === undefined) return err(refusal("trellis.bootstrap.unknown_instance"));
  if (!call.dev) {
    const hint = "Provision this instance, or pass the token of this dev platform (TRELLIS_DEV_TOKEN).";
    return err(refusal("trellis.bootstrap.dev_token_required", { hint }));
  }
  const provisioned = await dev.provision(call.request);
  return provisioned.isErr() ? err(provisioned.error) : admitKnown(deps, call, provisioned.value);
}

async function admitKnown(
  deps: AdmissionDeps,
  call: AuthenticatedCall,
  instance: InstanceRow,
): Promise<Result<Admitted, Refusal>> {
  const { request } = call;
  const { queries } = deps.storage;
  const found = await findDeployment(queries, instance.deploymentId);
  if (found === undefined) return err(refusal("trellis.bootstrap.unknown_instance"));
  if (instance.disabled === 1 || found.disabled === 1)
    return err(refusal("trellis.bootstrap.instance_disabled"));
  if (found.participantId !== request.participant.id) {
    const hint = `This instance was provisioned for ${found.participantId}.`;
    return err(refusal("trellis.bootstrap.participant_mismatch", { hint }));
  }
  const current = await currentDeployment(deps, call, found);
  if (current.isErr()) return err(current.error);
  const { digest } = request.participant;
  const artifact = await deps.catalog.artifact(queries, found.participantId, digest);
  if (artifact === undefined) return err(refusal("trellis.bootstrap.participant_unknown"));
  if ((artifact.kind === "service") !== (request.kind === "service")) {
    const hint = `${found.participantId} is a ${artifact.kind}: connect it as one.`;
    return err(refusal("trellis.bootstrap.participant_mismatch", { hint }));
  }
  return ok({ instance, deployment: current.value, artifact, digest });
}

/**
 * The process must run the revision that is deployed. Two exceptions: a connection that runs an older
 * revision may go on (a rolling deployment must not end its own old replicas), and in dev mode the token's
 * holder replaces the revision.
 */
async function currentDeployment(
  deps: AdmissionDeps,
  call: AuthenticatedCall,
  deployment: DeploymentRow,
): Promise<Result<DeploymentRow, Refusal>> {
  const { request } = call;
  if (deployment.participantDigest === request.participant.digest) return ok(deployment);
  if (await runsAlready(deps, request)) return ok(deployment);
  if (deps.dev !== undefined && call.dev) return deps.dev.replace(request, deployment);
  const hint = "Install the contract that this process was built with, or run the process that is installed.";
  return err(refusal("trellis.bootstrap.participant_mismatch", { hint }));
}

async function runsAlready(deps: AdmissionDeps, request: AuthenticatedCall["request"]): Promise<boolean> {
  if (request.connection === undefined) return false;
  const row = await findConnection(deps.storage.queries, request.connection);
  return (
    row !== undefined &&
    row.identityKey === request.identityKey &&
    row.sessionKey === request.sessionKey &&
    row.participantDigest === request.participant.digest
  );
}
