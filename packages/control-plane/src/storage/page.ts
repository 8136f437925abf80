/** What a list asks for: how many rows, and after which one. */
export interface PageRequest {
  limit: number;
  /** The last key of the page before; the page starts behind it. */
  after: string | undefined;
}

/** Rows of one page and the key to continue behind, or `undefined` on the last page. */
export interface Page<Row> {
  rows: readonly Row[];
  next: string | undefined;
}

/** Cuts a result that was read with `limit + 1` into a page. */
export function cutPage<Row>(rows: readonly Row[], limit: number, keyOf: (row: Row) => string): Page<Row> {
  if (rows.length <= limit) return { rows, next: undefined };
  const kept = rows.slice(0, limit);
  const last = kept[kept.length - 1];
  return { rows: kept, next: last === undefined ? undefined : keyOf(last) };
}
