import type { AnyParticipant } from "@trellis/contract";
import { cliParticipant } from "@trellis/control-plane/core";
import type { ConnectedClient } from "@trellis/runtime";
import { connectClientWith, nodePlatform } from "@trellis/runtime/node";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import type { FoundPlatform } from "./find-platform.ts";
import { askWellKnown } from "./well-known.ts";

export type CoreClient = ConnectedClient<typeof cliParticipant>;

const connectTimeoutMs = 10_000;

/** Connects as the command line itself, to the platform's own API. */
export async function connectCore(found: FoundPlatform): Promise<CoreClient> {
  // A service waits for its platform; a person wants to know at once that it is not there.
  const answer = await askWellKnown(found.url);
  if ("problem" in answer) {
    throw new CliFailure(`The platform of ${found.source} is not reachable: ${answer.problem}.`, {
      exitCode: EXIT.noPlatform,
      hint: "Start it (`trellis dev`, `trellis server`); `trellis doctor` looks closer.",
    });
  }
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
