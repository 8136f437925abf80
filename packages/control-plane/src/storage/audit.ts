import type { AuditEntry, Queries } from "./storage.ts";

/** Appends one audit row; called by `Storage.mutate` only, in the transaction that it describes. */
export async function insertAudit(queries: Queries, entry: AuditEntry): Promise<void> {
  await queries
    .insertInto("audit")
    .values({
      id: entry.id,
      at: entry.at,
      actor: entry.actor,
      action: entry.action,
      subject: entry.subject,
      detail: JSON.stringify(entry.detail ?? {}),
    })
    .execute();
}
