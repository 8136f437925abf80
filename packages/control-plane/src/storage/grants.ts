import { Type } from "typebox";
import { Compile } from "typebox/compile";
import type { Queries } from "./storage.ts";

const Names = Compile(Type.Array(Type.String()));

/** Actions of the platform's own API that were granted to a deployment; `*` stands for all of them. */
export interface PlatformGrants {
  /** Counts the changes; 0 when nothing was ever granted. */
  revision: number;
  rpc: readonly string[];
}

const principal = (deploymentId: string) => `deployment:${deploymentId}`;

export async function findPlatformGrants(queries: Queries, deploymentId: string): Promise<PlatformGrants> {
  const row = await queries
    .selectFrom("grants")
    .select(["revision", "grants"])
    .where("principal", "=", principal(deploymentId))
    .executeTakeFirst();
  if (row === undefined) return { revision: 0, rpc: [] };
  const rpc: unknown = JSON.parse(row.grants);
  if (!Names.Check(rpc)) throw new Error("Stored grants are damaged.");
  return { revision: row.revision, rpc };
}

/** Replaces what was granted; the caller has compared revisions in the same transaction. */
export async function savePlatformGrants(
  queries: Queries,
  input: { deploymentId: string; participantId: string; grants: PlatformGrants; now: number },
): Promise<void> {
  const { deploymentId, participantId, now } = input;
  const { revision, rpc } = input.grants;
  const changed = { revision, grants: JSON.stringify(rpc), updatedAt: now };
  await queries
    .insertInto("grants")
    .values({ principal: principal(deploymentId), participantId, ...changed })
    .onConflict((conflict) => conflict.columns(["principal", "participantId"]).doUpdateSet(changed))
    .execute();
}
