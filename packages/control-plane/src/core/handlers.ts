import type { Plane } from "../plane.ts";
import { connectionHandlers } from "./connections.ts";
import { deploymentHandlers } from "./deployments.ts";
import { instanceHandlers } from "./instances.ts";
import { participantHandlers } from "./participants.ts";

/** What the handlers work on; `actor` stands in the audit rows. */
export interface CoreDeps {
  plane: Plane;
  actor: { name: string; owner: string | null };
}

/** Every action of `trellis.core@v1` as a plain function of its input. */
export function coreHandlers(plane: Plane, owner: string | null) {
  const deps: CoreDeps = { plane, actor: { name: "administrator", owner } };
  return {
    ...participantHandlers(deps),
    ...deploymentHandlers(deps),
    ...instanceHandlers(deps),
    ...connectionHandlers(deps),
  };
}

export type CoreHandlers = ReturnType<typeof coreHandlers>;
