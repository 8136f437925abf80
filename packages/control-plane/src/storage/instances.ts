import type { Selectable } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
import type { InstancesTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type InstanceRow = Selectable<InstancesTable>;

export function findInstance(queries: Queries, id: string): Promise<InstanceRow | undefined> {
  return queries.selectFrom("instances").selectAll().where("id", "=", id).executeTakeFirst();
}

export function findInstanceByKey(queries: Queries, identityKey: string): Promise<InstanceRow | undefined> {
  return queries
    .selectFrom("instances")
    .selectAll()
    .where("identityKey", "=", identityKey)
    .executeTakeFirst();
}

export async function listInstances(
  queries: Queries,
  page: PageRequest,
  deploymentId?: string,
): Promise<Page<InstanceRow>> {
  const rows = await queries
    .selectFrom("instances")
    .selectAll()
    .$if(deploymentId !== undefined, (query) => query.where("deploymentId", "=", deploymentId ?? ""))
    .$if(page.after !== undefined, (query) => query.where("id", ">", page.after ?? ""))
    .orderBy("id")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.id);
}

export async function insertInstance(queries: Queries, row: InstanceRow): Promise<void> {
  await queries.insertInto("instances").values(row).execute();
}

export async function setInstanceDisabled(queries: Queries, id: string, disabled: boolean): Promise<void> {
  await queries
    .updateTable("instances")
    .set({ disabled: disabled ? 1 : 0 })
    .where("id", "=", id)
    .execute();
}

/** Ephemeral instances of which no connection is left. */
export function abandonedInstances(queries: Queries): Promise<InstanceRow[]> {
  return queries
    .selectFrom("instances as i")
    .selectAll("i")
    .where("i.ephemeral", "=", 1)
    .where((where) =>
      where.not(
        where.exists(
          where.selectFrom("connections as c").select("c.id").whereRef("c.instanceId", "=", "i.id"),
        ),
      ),
    )
    .execute();
}

export async function deleteInstance(queries: Queries, id: string): Promise<void> {
  await queries.deleteFrom("instances").where("id", "=", id).execute();
}
