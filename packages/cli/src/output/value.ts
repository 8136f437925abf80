import type { Column } from "./table.ts";
import type { Terminal } from "./terminal.ts";

type Rec = Readonly<Record<string, unknown>>;

/** Shows the answer of a call: JSON, or a table when it is a list (or holds just one) and a table is wanted. */
export function showValue(terminal: Terminal, value: unknown, table: boolean): void {
  const rows = table && !terminal.json ? rowsOf(value) : undefined;
  if (rows !== undefined) return terminal.rows(columnsOf(rows), rows, "The list is empty.");
  // Nothing was answered: there is nothing to show, but a program expects a value.
  if (value === undefined && !terminal.json) return;
  terminal.value(value);
}

function rowsOf(value: unknown): readonly Rec[] | undefined {
  const lists = isRecord(value) ? Object.values(value).filter(Array.isArray) : [];
  const list: unknown = Array.isArray(value) ? value : lists.length === 1 ? lists[0] : undefined;
  return Array.isArray(list) && list.every(isRecord) ? list : undefined;
}

function columnsOf(rows: readonly Rec[]): Column<Rec>[] {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return keys.map((key) => ({ heading: key, cell: (row) => cellOf(row[key]) }));
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isRecord(value: unknown): value is Rec {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
