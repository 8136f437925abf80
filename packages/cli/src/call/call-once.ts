import type { AnyParticipant } from "@trellis/contract";
import { coreApi } from "@trellis/control-plane/core";
import { toBase64Url } from "@trellis/protocol";
import type { CallOptions } from "@trellis/runtime";
import { nodePort } from "@trellis/runtime/node";
import { readApiArtifact } from "../contract/artifact.ts";
import { callParticipant } from "../contract/call-participant.ts";
import { type CoreClient, connectAs } from "../platform/connect-core.ts";
import type { FoundPlatform } from "../platform/find-platform.ts";
import { listApis } from "../platform/lists.ts";
import { findAction } from "./find-action.ts";

export interface CallOnce {
  readonly core: CoreClient;
  readonly platform: FoundPlatform;
  /** Name of the action, with or without its API. */
  readonly name: string;
  readonly input: unknown;
  readonly options: CallOptions;
}

/**
 * Calls an action whose contract is learned from the platform. For other APIs than the platform's own it takes a
 * participant that uses the API: one is installed per API, and an instance of it made for this call, which the
 * platform removes by itself. Throws what the call ends with.
 */
export async function callOnce({ core, platform, name, input, options }: CallOnce): Promise<unknown> {
  const { api, action } = findAction(await listApis(core), name);
  if (api.id === coreApi.id) return core.request(action, input ?? {}, options).orThrow();
  const { artifact } = await core.rpc.core.apisGet({ id: api.id }).orThrow();
  const contract = readApiArtifact(artifact);
  const participant = callParticipant(contract);
  const seed = await provision(core, participant);
  const client = await connectAs({ ...platform, devToken: undefined, seed }, participant);
  try {
    const wanted = contract.rpc[action]?.input;
    return await client.request(action, wanted === null ? undefined : (input ?? {}), options).orThrow();
  } finally {
    await client.close();
  }
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
