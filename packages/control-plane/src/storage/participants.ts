import type { Selectable } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
import type { ParticipantsTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type ParticipantRow = Selectable<ParticipantsTable>;

/** The current revision of a participant. */
export function findParticipant(queries: Queries, id: string): Promise<ParticipantRow | undefined> {
  return queries
    .selectFrom("participants")
    .selectAll()
    .where("id", "=", id)
    .orderBy("revision", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** The newest revision of a participant that has this digest. */
export function findParticipantByDigest(
  queries: Queries,
  id: string,
  digest: string,
): Promise<ParticipantRow | undefined> {
  return queries
    .selectFrom("participants")
    .selectAll()
    .where("id", "=", id)
    .where("digest", "=", digest)
    .orderBy("revision", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** Current revisions of participants, by id. */
export async function listParticipants(queries: Queries, page: PageRequest): Promise<Page<ParticipantRow>> {
  const rows = await queries
    .selectFrom("participants as p")
    .selectAll("p")
    .where((where) =>
      where(
        "p.revision",
        "=",
        where
          .selectFrom("participants as other")
          .select((select) => select.fn.max("other.revision").as("newest"))
          .whereRef("other.id", "=", "p.id"),
      ),
    )
    .$if(page.after !== undefined, (query) => query.where("p.id", ">", page.after ?? ""))
    .orderBy("p.id")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => row.id);
}

/** Appends a revision; the caller has computed its number in the same transaction. */
export async function insertParticipant(queries: Queries, row: ParticipantRow): Promise<void> {
  await queries.insertInto("participants").values(row).execute();
}
