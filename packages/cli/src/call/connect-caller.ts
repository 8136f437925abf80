import type { AnyParticipant } from "@trellis/contract";
import { toBase64Url } from "@trellis/protocol";
import type { ConnectedClient } from "@trellis/runtime";
import { nodePort } from "@trellis/runtime/node";
import { type CallableApi, readApiArtifact } from "../contract/artifact.ts";
import { callParticipant } from "../contract/call-participant.ts";
import { type CoreClient, connectAs } from "../platform/connect-core.ts";
import type { FoundPlatform } from "../platform/find-platform.ts";

/** A client that may use one API, and the API's contract as the platform holds it. */
export interface Caller {
  readonly client: ConnectedClient<AnyParticipant>;
  readonly contract: CallableApi;
}

/**
 * Connects as a participant that uses an API whose contract is learned from the platform: one is installed per API, and
 * an instance of it made for this call, which the platform removes by itself.
 */
export async function connectCaller(core: CoreClient, platform: FoundPlatform, api: string): Promise<Caller> {
  const { artifact } = await core.rpc.core.apisGet({ id: api }).orThrow();
  const contract = readApiArtifact(artifact);
  const participant: AnyParticipant = callParticipant(contract);
  const seed = await provision(core, participant);
  const client = await connectAs({ ...platform, devToken: undefined, seed }, participant);
  return { client, contract };
}

/** Sees to it that the participant is deployed as it is now, and makes an instance of it. Returns its seed. */
async function provision({ rpc }: CoreClient, participant: AnyParticipant): Promise<string> {
  const { id } = participant;
  await rpc.core.participantsInstall({ artifact: { ...participant.artifact } }).orThrow();
  const known = await rpc.core.deploymentsGet({ id });
  if (known.isErr()) {
    const created = await rpc.core.deploymentsCreate({ participant: id });
    // Another `trellis call` may have been faster.
    if (created.isErr() && created.error.type !== "NameRefused") throw created.error;
  } else if (known.value.deployment.participant.digest !== participant.digest) {
    await rpc.core.deploymentsUpdate({ id }).orThrow();
  }
  const identity = nodePort.ed25519.keyPair();
  const identityKey = toBase64Url(identity.publicKey);
  const instance = { deployment: id, identityKey, name: "trellis call", ephemeral: true };
  await rpc.core.instancesProvision(instance).orThrow();
  return toBase64Url(identity.seed);
}
