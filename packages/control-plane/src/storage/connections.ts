import type { Selectable } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
import type { ConnectionsTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type ConnectionRow = Selectable<ConnectionsTable>;

export function findConnection(queries: Queries, id: string): Promise<ConnectionRow | undefined> {
  return queries.selectFrom("connections").selectAll().where("id", "=", id).executeTakeFirst();
}

export async function listConnections(
  queries: Queries,
  page: PageRequest,
  deploymentId?: string,
): Promise<Page<ConnectionRow>> {
  const rows = await queries
    .selectFrom("connections")
    .selectAll()
    .$if(deploymentId !== undefined, (query) => query.where("deploymentId", "=", deploymentId ?? ""))
    .$if(page.after !== undefined, (query) => query.where("id", ">", page.after ?? ""))
    .orderBy("id")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.id);
}

export function allConnections(queries: Queries): Promise<ConnectionRow[]> {
  return queries.selectFrom("connections").selectAll().execute();
}

/** Connections of an instance, of a deployment, or of all that hold one identity. */
export function connectionsOf(
  queries: Queries,
  owner: { column: "instanceId" | "deploymentId" | "identityKey"; id: string },
): Promise<ConnectionRow[]> {
  return queries.selectFrom("connections").selectAll().where(owner.column, "=", owner.id).execute();
}

/** Writes a new connection, or the newer authorization of a known one. */
export async function saveConnection(queries: Queries, row: ConnectionRow): Promise<void> {
  await queries
    .insertInto("connections")
    .values(row)
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({
        authorizationDigest: row.authorizationDigest,
        participantDigest: row.participantDigest,
        updatedAt: row.updatedAt,
      }),
    )
    .execute();
}

/** Records that a connection's socket came or went. */
export async function setConnectionSocket(
  queries: Queries,
  id: string,
  socket: Pick<ConnectionRow, "state" | "serverId" | "cid" | "updatedAt">,
): Promise<void> {
  await queries.updateTable("connections").set(socket).where("id", "=", id).execute();
}

export async function deleteConnection(queries: Queries, id: string): Promise<void> {
  await queries.deleteFrom("connections").where("id", "=", id).execute();
}
