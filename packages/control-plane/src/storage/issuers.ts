import type { Selectable } from "kysely";
import type { IssuersTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type IssuerRow = Selectable<IssuersTable>;

/** Every issuer that was ever published, oldest first; old statements stay verifiable by them. */
export function allIssuers(queries: Queries): Promise<IssuerRow[]> {
  return queries.selectFrom("issuers").selectAll().orderBy("createdAt").execute();
}

/** Adds an issuer once; a known one keeps its dates. */
export async function insertIssuer(queries: Queries, row: IssuerRow): Promise<void> {
  await queries
    .insertInto("issuers")
    .values(row)
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
}
