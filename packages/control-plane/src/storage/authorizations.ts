import type { Selectable } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
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

/** The newest authorizations of all known connections: what a lost stream is written again from first. */
export function newestAuthorizations(queries: Queries, now: number): Promise<AuthorizationRow[]> {
  return queries
    .selectFrom("authorizations as a")
    .innerJoin("connections as c", "c.authorizationDigest", "a.digest")
    .selectAll("a")
    .where("a.expiresAt", ">", now)
    .execute();
}

/** Authorizations that ended after `since`, or have not ended, in the order of their digests. */
export async function pageOfAuthorizations(
  queries: Queries,
  page: PageRequest,
  since: number,
): Promise<Page<AuthorizationRow>> {
  const rows = await queries
    .selectFrom("authorizations")
    .selectAll()
    .where("expiresAt", ">", since)
    .where("digest", ">", page.after ?? "")
    .orderBy("digest")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.digest);
}

/** Forgets up to `limit` authorizations that ended before `before`; says how many. Those in use stay. */
export async function forgetAuthorizations(queries: Queries, before: number, limit: number): Promise<number> {
  const over = await queries
    .selectFrom("authorizations as a")
    .leftJoin("connections as c", "c.authorizationDigest", "a.digest")
    .select("a.digest")
    .where("a.expiresAt", "<=", before)
    .where("c.id", "is", null)
    .orderBy("a.expiresAt")
    .limit(limit)
    .execute();
  if (over.length === 0) return 0;
  const digests = over.map((row) => row.digest);
  await queries.deleteFrom("authorizations").where("digest", "in", digests).execute();
  return over.length;
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
