import type { Selectable } from "kysely";
import type { RevocationsTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type RevocationRow = Selectable<RevocationsTable>;

/** Writes a revocation; a later instant for the same subject replaces the earlier one, never the reverse. */
export async function saveRevocation(queries: Queries, row: RevocationRow): Promise<void> {
  const known = await queries
    .selectFrom("revocations")
    .select("at")
    .where("subjectKind", "=", row.subjectKind)
    .where("subjectId", "=", row.subjectId)
    .executeTakeFirst();
  if (known !== undefined && known.at >= row.at) return;
  const { at, reason, payload, signature } = row;
  await queries
    .insertInto("revocations")
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(["subjectKind", "subjectId"]).doUpdateSet({ at, reason, payload, signature }),
    )
    .execute();
}

/** The standing revocation of one subject. */
export function findRevocation(
  queries: Queries,
  kind: string,
  id: string,
): Promise<RevocationRow | undefined> {
  return queries
    .selectFrom("revocations")
    .selectAll()
    .where("subjectKind", "=", kind)
    .where("subjectId", "=", id)
    .executeTakeFirst();
}

/** Every revocation: all of them are published again when the stream was lost. */
export function allRevocations(queries: Queries): Promise<RevocationRow[]> {
  return queries.selectFrom("revocations").selectAll().execute();
}

/** The latest instant at which any of these subjects was revoked. */
export async function latestRevocation(
  queries: Queries,
  subjects: readonly (readonly [kind: string, id: string])[],
): Promise<number | undefined> {
  const row = await queries
    .selectFrom("revocations")
    .select((select) => select.fn.max("at").as("at"))
    .where((where) =>
      where.or(
        subjects.map(([kind, id]) =>
          where.and([where("subjectKind", "=", kind), where("subjectId", "=", id)]),
        ),
      ),
    )
    .executeTakeFirst();
  return row?.at ?? undefined;
}
