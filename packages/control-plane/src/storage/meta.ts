import type { Queries, Storage } from "./storage.ts";

/** Reads one value of the database's own description. */
export async function readMeta(queries: Queries, key: string): Promise<string | undefined> {
  const row = await queries.selectFrom("meta").select("value").where("key", "=", key).executeTakeFirst();
  return row?.value;
}

/** Writes a value that was not there; an existing one is left alone. Returns the value that holds. */
export async function claimMeta(queries: Queries, key: string, value: string): Promise<string> {
  await queries
    .insertInto("meta")
    .values({ key, value })
    .onConflict((conflict) => conflict.column("key").doNothing())
    .execute();
  return (await readMeta(queries, key)) ?? value;
}

/** Writes a value, whatever was there. */
export async function writeMeta(queries: Queries, key: string, value: string): Promise<void> {
  await queries
    .insertInto("meta")
    .values({ key, value })
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
    .execute();
}

/** What dev mode installed without asking anybody is not to be served to others. */
export async function claimMode(storage: Storage, mode: "dev" | "server"): Promise<void> {
  const held = await claimMeta(storage.queries, "mode", mode);
  if (held === mode) return;
  throw new Error(
    `This data folder belongs to a control plane in ${held} mode; use another one for ${mode} mode.`,
  );
}
