import type { Selectable } from "kysely";
import type { StateTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type StateRow = Selectable<StateTable>;

/** Whose state, and which. */
export type StateKey = Pick<StateRow, "principal" | "participantId" | "alias">;

/** The row of a key, whatever is in it. */
export function findState(queries: Queries, key: StateKey): Promise<StateRow | undefined> {
  return queries
    .selectFrom("state")
    .selectAll()
    .where("principal", "=", key.principal)
    .where("participantId", "=", key.participantId)
    .where("alias", "=", key.alias)
    .executeTakeFirst();
}

/** Writes the row of a key over the revision before; false when it is no longer that one. */
export async function saveState(queries: Queries, row: StateRow): Promise<boolean> {
  const { principal, participantId, alias, ...rest } = row;
  if (row.revision === 1) {
    const added = await queries
      .insertInto("state")
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return added.numInsertedOrUpdatedRows === 1n;
  }
  const changed = await queries
    .updateTable("state")
    .set(rest)
    .where("principal", "=", principal)
    .where("participantId", "=", participantId)
    .where("alias", "=", alias)
    .where("revision", "=", row.revision - 1)
    .executeTakeFirst();
  return changed.numUpdatedRows === 1n;
}
