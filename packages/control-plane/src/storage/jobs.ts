import type { Expression, ExpressionBuilder, Selectable, SqlBool } from "kysely";
import { cutPage, type Page, type PageRequest } from "./page.ts";
import type { Database, JobsTable } from "./schema.ts";
import type { Queries } from "./storage.ts";

export type JobRow = Selectable<JobsTable>;

/** Which jobs are meant; what is left out matches all. */
export interface JobFilter {
  readonly deploymentId?: string | undefined;
  readonly queue?: string | undefined;
  readonly states?: readonly string[] | undefined;
  /** Made at or after, ms since 1970. */
  readonly since?: number | undefined;
  /** Made before. */
  readonly until?: number | undefined;
  /** Part of the last error. */
  readonly error?: string | undefined;
}

/** How many ids are looked up by one statement. */
const lookUpLimit = 200;
/** How many rows are written by one statement. */
const saveLimit = 100;

export async function findJobs(
  queries: Queries,
  queue: Pick<JobRow, "deploymentId" | "queue">,
  ids: readonly string[],
): Promise<JobRow[]> {
  const found: JobRow[] = [];
  for (let at = 0; at < ids.length; at += lookUpLimit) {
    const rows = await queries
      .selectFrom("jobs")
      .selectAll()
      .where("deploymentId", "=", queue.deploymentId)
      .where("queue", "=", queue.queue)
      .where("id", "in", ids.slice(at, at + lookUpLimit))
      .execute();
    found.push(...rows);
  }
  return found;
}

export async function saveJobs(queries: Queries, rows: readonly JobRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += saveLimit) {
    await queries
      .insertInto("jobs")
      .values(rows.slice(at, at + saveLimit))
      .onConflict((conflict) =>
        conflict.columns(["deploymentId", "queue", "id"]).doUpdateSet(({ ref }) => ({
          state: ref("excluded.state"),
          createdAt: ref("excluded.createdAt"),
          updatedAt: ref("excluded.updatedAt"),
          error: ref("excluded.error"),
          snapshot: ref("excluded.snapshot"),
          sequence: ref("excluded.sequence"),
        })),
      )
      .execute();
  }
}

/** The newest first. The key of a page is instant and ids of its last row. */
export async function listJobs(
  queries: Queries,
  page: PageRequest,
  filter: JobFilter,
): Promise<Page<JobRow>> {
  const after = page.after === undefined ? undefined : readKey(page.after);
  const rows = await queries
    .selectFrom("jobs")
    .selectAll()
    .where((where) => where.and(conditions(where, filter)))
    .$if(after !== undefined, (query) =>
      query.where((where) =>
        where.or([
          where("createdAt", "<", after?.createdAt ?? 0),
          where.and([where("createdAt", "=", after?.createdAt ?? 0), where("id", "<", after?.id ?? "")]),
        ]),
      ),
    )
    .orderBy("createdAt", "desc")
    .orderBy("id", "desc")
    .limit(page.limit + 1)
    .execute();
  return cutPage(rows, page.limit, (row) => `${row.createdAt} ${row.id}`);
}

/** How many jobs there are of each queue and state. */
export function countJobs(queries: Queries, filter: JobFilter) {
  return queries
    .selectFrom("jobs")
    .select(["deploymentId", "queue", "state"])
    .select((select) => select.fn.countAll<number>().as("count"))
    .select((select) => select.fn.min("createdAt").as("oldest"))
    .where((where) => where.and(conditions(where, filter)))
    .groupBy(["deploymentId", "queue", "state"])
    .execute();
}

/** Forgets jobs of one queue that have been over since before an instant; at most so many at a time. */
export async function pruneJobs(
  queries: Queries,
  queue: Pick<JobRow, "deploymentId" | "queue">,
  limits: { readonly before: number; readonly live: readonly string[]; readonly count: number },
): Promise<number> {
  const rows = await queries
    .selectFrom("jobs")
    .select("id")
    .where("deploymentId", "=", queue.deploymentId)
    .where("queue", "=", queue.queue)
    .where("state", "not in", limits.live)
    .where("updatedAt", "<", limits.before)
    .limit(limits.count)
    .execute();
  if (rows.length === 0) return 0;
  await queries
    .deleteFrom("jobs")
    .where("deploymentId", "=", queue.deploymentId)
    .where("queue", "=", queue.queue)
    .where(
      "id",
      "in",
      rows.map(({ id }) => id),
    )
    .execute();
  return rows.length;
}

function conditions(
  where: ExpressionBuilder<Database, "jobs">,
  { deploymentId, queue, states, since, until, error }: JobFilter,
): Expression<SqlBool>[] {
  const all: Expression<SqlBool>[] = [];
  if (deploymentId !== undefined) all.push(where("deploymentId", "=", deploymentId));
  if (queue !== undefined) all.push(where("queue", "=", queue));
  if (states !== undefined && states.length > 0) all.push(where("state", "in", states));
  if (since !== undefined) all.push(where("createdAt", ">=", since));
  if (until !== undefined) all.push(where("createdAt", "<", until));
  if (error !== undefined) all.push(where("error", "like", `%${error}%`));
  return all;
}

function readKey(key: string): { createdAt: number; id: string } {
  const space = key.indexOf(" ");
  return { createdAt: Number(key.slice(0, space)), id: key.slice(space + 1) };
}
