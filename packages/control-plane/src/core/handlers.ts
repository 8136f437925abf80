import type { Plane } from "../plane.ts";
import type { CoreHandlers } from "./api.ts";
import { apiHandlers } from "./apis.ts";
import { connectionHandlers } from "./connections.ts";
import { deploymentHandlers } from "./deployments.ts";
import { grantHandlers } from "./grants.ts";
import { instanceHandlers } from "./instances.ts";
import { participantHandlers } from "./participants.ts";

/** What the handlers work on; `actor` stands in the audit rows. */
export interface CoreDeps {
  plane: Plane;
  actor: { name: string; owner: string | null };
}

/** The handlers of the platform's own API over one control plane. */
export function coreHandlers(plane: Plane, actor: CoreDeps["actor"]): CoreHandlers {
  const deps: CoreDeps = { plane, actor };
  return {
    ...participantHandlers(deps),
    ...deploymentHandlers(deps),
    ...instanceHandlers(deps),
    ...apiHandlers(deps),
    ...grantHandlers(deps),
    ...connectionHandlers(deps),
  };
}
