import { isErr, isResult } from "@trellis/result";
import { Kysely, type Transaction } from "kysely";
import { insertAudit } from "./audit.ts";
import { migrate } from "./migrations.ts";
import type { Database } from "./schema.ts";
import { sqliteDialect } from "./sqlite.ts";

/** Anything a query can run on: the database itself, or a transaction of it. */
export type Queries = Kysely<Database>;

/** What the audit row of a mutation says. `detail` must hold no secret. */
export interface AuditEntry {
  id: string;
  at: number;
  actor: string;
  action: string;
  subject: string;
  detail?: Readonly<Record<string, string | number | boolean | null>>;
}

/** Carries a refused mutation out of its transaction, so that Kysely rolls back. */
class Refusal extends Error {
  readonly value: unknown;
  constructor(value: unknown) {
    super("The mutation was refused.");
    this.value = value;
  }
}

/**
 * The control plane's SQL state.
 *
 * Invariants: 1. every change of authority goes through {@link Storage.mutate}: one transaction, with its
 * audit row in it; 2. nothing reaches NATS from inside a transaction: effects follow the commit; 3. a
 * mutation that returns an `Err` leaves nothing behind.
 */
export class Storage {
  readonly queries: Queries;

  private constructor(queries: Queries) {
    this.queries = queries;
  }

  /** Opens (and creates or migrates) the database at a path; `:memory:` gives a private, empty one. */
  static async open(path: string): Promise<Storage> {
    const queries = new Kysely<Database>({ dialect: sqliteDialect(path) });
    try {
      await migrate(queries);
    } catch (cause) {
      await queries.destroy();
      throw cause;
    }
    return new Storage(queries);
  }

  /** Runs `work` and writes its audit row, both or neither. An `Err` that it returns rolls back and is returned. */
  async mutate<T>(entry: AuditEntry, work: (tx: Transaction<Database>) => Promise<T>): Promise<T> {
    try {
      return await this.transact(async (tx) => {
        const value = await work(tx);
        if (isResult(value) && isErr(value)) throw new Refusal(value);
        await insertAudit(tx, entry);
        return value;
      });
    } catch (cause) {
      if (cause instanceof Refusal) return cause.value as T;
      throw cause;
    }
  }

  /** A transaction without an audit row: for what only records facts (a socket came or went). */
  transact<T>(work: (tx: Transaction<Database>) => Promise<T>): Promise<T> {
    return this.queries.transaction().execute(work);
  }

  close(): Promise<void> {
    return this.queries.destroy();
  }
}
