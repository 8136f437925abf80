import type { Selectable } from "kysely";
import type { AuthorizationsTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type AuthorizationRow = Selectable<AuthorizationsTable>;

export function findAuthorization(queries: Queries, digest: string): Promise<AuthorizationRow | undefined> {
  return queries.selectFrom("authorizations").selectAll().where("digest", "=", digest).executeTakeFirst();
}

export async function insertAuthorization(queries: Queries, row: AuthorizationRow): Promise<void> {
  await queries.insertInto("authorizations").values(row).execute();
}

/** Marks every live authorization of an owner as revoked; an earlier instant stays. Returns their digests. */
export async function revokeAuthorizations(
  queries: Queries,
  owner: { column: "connectionId" | "instanceId" | "deploymentId"; id: string },
  at: number,
): Promise<string[]> {
  const rows = await queries
    .updateTable("authorizations")
    .set({ revokedAt: at })
    .where(owner.column, "=", owner.id)
    .where("revokedAt", "is", null)
    .returning("digest")
    .execute();
  return rows.map((row) => row.digest);
}

/** Connections whose newest authorization is expired or revoked. */
export async function endedConnections(queries: Queries, now: number): Promise<string[]> {
  const rows = await queries
    .selectFrom("connections as c")
    .innerJoin("authorizations as a", "a.digest", "c.authorizationDigest")
    .select("c.id")
    .where((where) => where.or([where("a.revokedAt", "is not", null), where("a.expiresAt", "<=", now)]))
    .execute();
  return rows.map((row) => row.id);
}

/** The newest authorizations of all known connections: what a lost stream is written again from. */
export function newestAuthorizations(queries: Queries): Promise<AuthorizationRow[]> {
  return queries
    .selectFrom("authorizations as a")
    .innerJoin("connections as c", "c.authorizationDigest", "a.digest")
    .selectAll("a")
    .execute();
}

/** Stores a content-addressed body once. */
export async function saveContent(
  queries: Queries,
  content: { digest: string; kind: "grants" | "policy"; body: string },
): Promise<void> {
  await queries
    .insertInto("contents")
    .values(content)
    .onConflict((conflict) => conflict.column("digest").doNothing())
    .execute();
}

export async function readContent(queries: Queries, digest: string): Promise<string | undefined> {
  const row = await queries
    .selectFrom("contents")
    .select("body")
    .where("digest", "=", digest)
    .executeTakeFirst();
  return row?.body;
}
