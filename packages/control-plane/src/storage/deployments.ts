import type { Selectable } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
import type { DeploymentsTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type DeploymentRow = Selectable<DeploymentsTable>;

export function findDeployment(queries: Queries, id: string): Promise<DeploymentRow | undefined> {
  return queries.selectFrom("deployments").selectAll().where("id", "=", id).executeTakeFirst();
}

export function findDeploymentByName(queries: Queries, name: string): Promise<DeploymentRow | undefined> {
  return queries.selectFrom("deployments").selectAll().where("name", "=", name).executeTakeFirst();
}

/** By id or by name: names have a dot in them, ids never. */
export function findDeploymentNamed(queries: Queries, idOrName: string): Promise<DeploymentRow | undefined> {
  return idOrName.includes(".") ? findDeploymentByName(queries, idOrName) : findDeployment(queries, idOrName);
}

/** The id that a filter means; an unknown name stays as it is and matches nothing. */
export async function deploymentIdOf(
  queries: Queries,
  idOrName: string | undefined,
): Promise<string | undefined> {
  if (idOrName?.includes(".") !== true) return idOrName;
  return (await findDeploymentByName(queries, idOrName))?.id ?? idOrName;
}

/** All deployments of a participant, oldest first. */
export function deploymentsOf(queries: Queries, participantId: string): Promise<DeploymentRow[]> {
  return queries
    .selectFrom("deployments")
    .selectAll()
    .where("participantId", "=", participantId)
    .orderBy("createdAt")
    .execute();
}

export async function listDeployments(queries: Queries, page: PageRequest): Promise<Page<DeploymentRow>> {
  const rows = await queries
    .selectFrom("deployments")
    .selectAll()
    .$if(page.after !== undefined, (query) => query.where("id", ">", page.after ?? ""))
    .orderBy("id")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.id);
}

export async function insertDeployment(queries: Queries, row: DeploymentRow): Promise<void> {
  await queries.insertInto("deployments").values(row).execute();
}

/** Points a deployment at another revision of its participant. */
export async function setDeploymentDigest(queries: Queries, id: string, digest: string): Promise<void> {
  await queries.updateTable("deployments").set({ participantDigest: digest }).where("id", "=", id).execute();
}

export async function setDeploymentDisabled(queries: Queries, id: string, disabled: boolean): Promise<void> {
  await queries
    .updateTable("deployments")
    .set({ disabled: disabled ? 1 : 0 })
    .where("id", "=", id)
    .execute();
}

/**
 * Moves a deployment to its next route epoch. With `overlapUntil` the present epoch stays valid until
 * then (a planned roll); without, it is void at once, and so is any older one.
 */
export async function rollEpoch(queries: Queries, id: string, overlapUntil?: number): Promise<DeploymentRow> {
  const present = await queries
    .selectFrom("deployments")
    .select("epoch")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return queries
    .updateTable("deployments")
    .set({
      epoch: present.epoch + 1,
      previousEpoch: overlapUntil === undefined ? null : present.epoch,
      previousUntil: overlapUntil ?? null,
    })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Every deployment: what bindings are resolved against. */
export function deploymentRows(queries: Queries): Promise<DeploymentRow[]> {
  return queries.selectFrom("deployments").selectAll().execute();
}

/** The providers that an administrator chose for a deployment's used APIs, by API. */
export async function chosenBindings(queries: Queries, deploymentId: string): Promise<Map<string, string>> {
  const rows = await queries
    .selectFrom("bindings")
    .select(["api", "providerId"])
    .where("deploymentId", "=", deploymentId)
    .orderBy("api")
    .execute();
  return new Map(rows.map((row) => [row.api, row.providerId]));
}

/** Chooses the provider of one used API; replaces an earlier choice. */
export async function chooseBinding(
  queries: Queries,
  choice: { deploymentId: string; api: string; providerId: string; now: number },
): Promise<void> {
  const { deploymentId, api, providerId, now } = choice;
  await queries
    .insertInto("bindings")
    .values({ deploymentId, api, providerId, createdAt: now })
    .onConflict((conflict) =>
      conflict.columns(["deploymentId", "api"]).doUpdateSet({ providerId, createdAt: now }),
    )
    .execute();
}

/** Withdraws the choice of a provider. */
export async function forgetBinding(queries: Queries, deploymentId: string, api: string): Promise<void> {
  await queries
    .deleteFrom("bindings")
    .where("deploymentId", "=", deploymentId)
    .where("api", "=", api)
    .execute();
}
