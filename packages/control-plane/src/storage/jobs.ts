import { type Expression, type ExpressionBuilder, type Selectable, type SqlBool, sql } from "kysely";
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

/** A span of time in equal parts: from `since` on, each of `bucketMs`. */
export interface Buckets {
  readonly since: number;
  readonly until: number;
  readonly bucketMs: number;
}

/** How many jobs were made in each part of a span. Parts without any are left out. */
export function countMade(queries: Queries, filter: JobFilter, buckets: Buckets) {
  return queries
    .selectFrom("jobs")
    .select(bucketOf("createdAt", buckets).as("bucket"))
    .select((select) => select.fn.countAll<number>().as("count"))
    .where((where) => where.and(conditions(where, { ...filter, ...spanOf(buckets) })))
    .groupBy("bucket")
    .execute();
}

/** How many jobs came to their end in each part of a span, by state. */
export function countEnded(queries: Queries, filter: EndedFilter, buckets: Buckets) {
  return queries
    .selectFrom("jobs")
    .select(["state", bucketOf("updatedAt", buckets).as("bucket")])
    .select((select) => select.fn.countAll<number>().as("count"))
    .where((where) => where.and(conditions(where, filter)))
    .where("updatedAt", ">=", buckets.since)
    .where("updatedAt", "<", buckets.until)
    .groupBy(["state", "bucket"])
    .execute();
}

/** The jobs that came to their end last in a span; at most so many. */
export function newestEnded(
  queries: Queries,
  filter: EndedFilter,
  { since, until, count }: { readonly since: number; readonly until: number; readonly count: number },
): Promise<Pick<JobRow, "snapshot">[]> {
  return queries
    .selectFrom("jobs")
    .select("snapshot")
    .where((where) => where.and(conditions(where, filter)))
    .where("updatedAt", ">=", since)
    .where("updatedAt", "<", until)
    .orderBy("updatedAt", "desc")
    .limit(count)
    .execute();
}

/** Of jobs that are over, in one of the states given. */
export type EndedFilter = Pick<JobFilter, "deploymentId" | "queue"> & { readonly states: readonly string[] };

function spanOf({ since, until }: Buckets): Pick<JobFilter, "since" | "until"> {
  return { since, until };
}

function bucketOf(column: "createdAt" | "updatedAt", { since, bucketMs }: Buckets) {
  return sql<number>`cast((${sql.ref(column)} - ${since}) / ${bucketMs} as integer)`;
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
