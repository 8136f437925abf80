import type { Selectable } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
import type { ResourcesTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type ResourceRow = Selectable<ResourcesTable>;

/** Everything that a deployment has, detached or not. */
export function resourcesOf(queries: Queries, deploymentId: string): Promise<ResourceRow[]> {
  return queries.selectFrom("resources").selectAll().where("deploymentId", "=", deploymentId).execute();
}

/** What deployments declare now and so must have. */
export function attachedResources(queries: Queries): Promise<ResourceRow[]> {
  return queries.selectFrom("resources").selectAll().where("state", "=", "attached").execute();
}

export function findResource(queries: Queries, id: string): Promise<ResourceRow | undefined> {
  return queries.selectFrom("resources").selectAll().where("id", "=", id).executeTakeFirst();
}

export async function listResources(
  queries: Queries,
  page: PageRequest,
  deploymentId?: string,
): Promise<Page<ResourceRow>> {
  const rows = await queries
    .selectFrom("resources")
    .selectAll()
    .$if(page.after !== undefined, (query) => query.where("id", ">", page.after ?? ""))
    .$if(deploymentId !== undefined, (query) => query.where("deploymentId", "=", deploymentId ?? ""))
    .orderBy("id")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.id);
}

/** The durable consumers of all deployments, or of one. */
export async function listConsumers(
  queries: Queries,
  page: PageRequest,
  deploymentId?: string,
): Promise<Page<ResourceRow>> {
  const rows = await queries
    .selectFrom("resources")
    .selectAll()
    .where("kind", "=", "consumer")
    .where("id", ">", page.after ?? "")
    .$if(deploymentId !== undefined, (query) => query.where("deploymentId", "=", deploymentId ?? ""))
    .orderBy("id")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.id);
}

/** Adds a resource, or says of one that is known how it is kept now. */
export async function saveResource(queries: Queries, row: ResourceRow): Promise<void> {
  const { spec, state, updatedAt } = row;
  await queries
    .insertInto("resources")
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(["deploymentId", "kind", "alias"]).doUpdateSet({ spec, state, updatedAt }),
    )
    .execute();
}

export async function deleteResource(queries: Queries, id: string): Promise<void> {
  await queries.deleteFrom("resources").where("id", "=", id).execute();
}
