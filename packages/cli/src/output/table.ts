import { visible } from "./visible.ts";

/** A column: its heading, and what it shows of a row. */
export interface Column<Row> {
  readonly heading: string;
  readonly cell: (row: Row) => string;
}

/** Lines of a table: columns as wide as they need, two spaces between, nothing behind the last one. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const body = rows.map((row) => columns.map(({ cell }) => visible(cell(row))));
  const lines = [columns.map(({ heading }) => heading), ...body];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => width(line[at] ?? ""))));
  return lines.map((line) =>
    line
      .map((text, at) => pad(text, widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function pad(text: string, to: number): string {
  return text + " ".repeat(Math.max(0, to - width(text)));
}

const characters = new Intl.Segmenter();

/** Counted in what a reader takes for characters, not in code units. */
function width(text: string): number {
  return Array.from(characters.segment(text)).length;
}

/** How long ago an instant was, in the largest unit that fits: `12 s`, `3 min`, `5 h`, `2 d`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}
