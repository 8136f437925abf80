/** Reads a list to its end, page by page. `read` gives one page and the cursor of the next. */
export async function allPages<Row>(
  read: (cursor: { cursor?: string }) => Promise<{ rows: readonly Row[]; cursor?: string }>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor === undefined ? {} : { cursor });
    rows.push(...page.rows);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return rows;
}
