import type { Selectable } from "kysely";
import type { PendingNoticesTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type PendingNoticeRow = Selectable<PendingNoticesTable>;

/** Notes, in the mutation that causes it, that something has to be told. */
export async function insertPendingNotice(queries: Queries, row: PendingNoticeRow): Promise<void> {
  await queries.insertInto("pendingNotices").values(row).execute();
}

/** What has to be told, oldest first. */
export function pendingNotices(queries: Queries): Promise<PendingNoticeRow[]> {
  return queries.selectFrom("pendingNotices").selectAll().orderBy("id").execute();
}

export async function deletePendingNotice(queries: Queries, id: string): Promise<void> {
  await queries.deleteFrom("pendingNotices").where("id", "=", id).execute();
}
