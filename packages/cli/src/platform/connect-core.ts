import type { AnyParticipant } from "@trellis/contract";
import { cliParticipant } from "@trellis/control-plane/core";
import type { ConnectedClient } from "@trellis/runtime";
import { connectClientWith, nodePlatform } from "@trellis/runtime/node";
import type { FoundPlatform } from "./find-platform.ts";

export type CoreClient = ConnectedClient<typeof cliParticipant>;

const connectTimeoutMs = 10_000;

/** Connects as the command line itself, to the platform's own API. */
export function connectCore(found: FoundPlatform): Promise<CoreClient> {
  return connectAs(found, cliParticipant);
}

/** Connects as any participant, by the platform's token or by a seed, never by what the environment says. */
export function connectAs<P extends AnyParticipant>(
  found: FoundPlatform,
  participant: P,
): Promise<ConnectedClient<P>> {
  const { url, root, devToken, seed } = found;
  const discover = () => ({ production: false, ...(devToken === undefined ? {} : { devToken }) });
  return connectClientWith(
    {
      participant,
      trellisUrl: url,
      ...(root === undefined ? {} : { root }),
      ...(seed === undefined ? {} : { seed }),
      name: "trellis",
      timeout: connectTimeoutMs,
      runtime: { log: false },
    },
    { platform: { ...nodePlatform, discover } },
  ).orThrow();
}
