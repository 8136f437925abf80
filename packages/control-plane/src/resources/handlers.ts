import { err, ok } from "@trellis/result";
import { nextCursor, readPage } from "../core/page.ts";
import { deploymentIdOf, findDeployment } from "../storage/deployments.ts";
import { listResources, type ResourceRow } from "../storage/resources.ts";
import { ResourceAttached, ResourceRefused, type ResourcesHandlers } from "./api.ts";
import { kvHandlers } from "./kv-handlers.ts";
import type { ObjectTransfers } from "./object-transfers.ts";
import { type ResourceDeps, ResourceDesk } from "./resource-desk.ts";
import { ForeignResource } from "./resource-errors.ts";
import { storeHandlers } from "./store-handlers.ts";

type ListHandlers = Omit<ResourcesHandlers, `Resources.${"Kv" | "Store"}.${string}`>;

/** The handlers of `trellis.resources@v1` over one control plane, on behalf of one caller. */
export function resourcesHandlers(deps: ResourceDeps, transfers: ObjectTransfers): ResourcesHandlers {
  const desk = new ResourceDesk(deps);
  return { ...listHandlers(deps, desk), ...kvHandlers(desk), ...storeHandlers(desk, transfers) };
}

function listHandlers({ plane, actor }: ResourceDeps, desk: ResourceDesk): ListHandlers {
  const { queries } = plane.storage;
  const view = async (row: ResourceRow) => {
    const { deploymentId: deployment, kind, alias, state, createdAt, updatedAt } = row;
    const service = (await findDeployment(queries, deployment))?.name ?? deployment;
    return { deployment, service, kind, alias, state, createdAt, updatedAt };
  };
  return {
    "Resources.List": async (input) => {
      const page = readPage("resources", input);
      if (page.isErr()) return err(page.error);
      const deployment = await deploymentIdOf(queries, input.deployment);
      const { rows, next } = await listResources(queries, page.value, deployment);
      return ok({ resources: await Promise.all(rows.map(view)), ...nextCursor("resources", next) });
    },

    "Resources.Get": async ({ kind, ...place }) => {
      const found = await desk.find(place, kind);
      if (found.isErr()) return err(found.error);
      const { row } = found.value;
      const usage = kind === "consumer" ? undefined : await plane.resources.usage(row);
      return ok({
        resource: await view(row),
        limits: limitsOf(row),
        ...(usage === undefined ? {} : { usage }),
      });
    },

    "Resources.Destroy": async ({ kind, force = false, ...place }) => {
      const found = await desk.find(place, kind);
      if (found.isErr()) return err(found.error);
      const { row } = found.value;
      if (row.state === "attached" && !force)
        return err(new ResourceAttached({ data: { alias: row.alias === "" ? kind : row.alias } }));
      const detail = { deployment: row.deploymentId, kind, alias: row.alias, forced: force };
      try {
        await plane.resources.destroy(row, plane.revoker.audit(actor, "resource.destroy", row.id, detail));
        return ok({ destroyed: true });
      } catch (error) {
        if (!(error instanceof ForeignResource)) throw error;
        return err(new ResourceRefused({ data: { problem: error.message } }));
      }
    },
  };
}

/** The numbers of a specification; what else is in it is nobody's business, names with secret bits among it. */
function limitsOf({ spec }: ResourceRow): Record<string, number | null> {
  const entries = Object.entries(JSON.parse(spec) as Record<string, unknown>);
  const limits = entries.filter(
    (entry): entry is [string, number | null] => entry[1] === null || typeof entry[1] === "number",
  );
  return Object.fromEntries(limits);
}
