import { DatabaseSync, type StatementSyncInstance } from "@photostructure/sqlite";
import { type SqliteDatabase, SqliteDialect, type SqliteStatement } from "kysely";

/** Statements that stay prepared; a control plane has far fewer distinct queries than this. */
const preparedLimit = 256;

/**
 * Makes the Kysely dialect for one SQLite file (or `:memory:`).
 *
 * Write-ahead log with full synchronisation: what the control plane acknowledged, a power cut does not
 * take back. Every transaction begins as a writer, so that two processes on one file wait for each other
 * (`busy_timeout`) and never fail in the middle with a read lock that cannot be upgraded.
 */
export function sqliteDialect(path: string): SqliteDialect {
  return new SqliteDialect({ database: () => Promise.resolve(openDatabase(path)) });
}

function openDatabase(path: string): SqliteDatabase {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA busy_timeout = 5000");
  database.exec("PRAGMA foreign_keys = ON");
  const prepared = new Map<string, SqliteStatement>();
  return {
    prepare(sql) {
      const text = sql === "begin" ? "begin immediate" : sql;
      const known = prepared.get(text);
      if (known !== undefined) return known;
      const statement = adapt(database.prepare(text));
      if (prepared.size < preparedLimit) prepared.set(text, statement);
      return statement;
    },
    close() {
      prepared.clear();
      database.close();
    },
  };
}

function adapt(statement: StatementSyncInstance): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...parameters),
    run: (parameters) => statement.run(...parameters),
    iterate: (parameters) => statement.iterate(...parameters),
  };
}
