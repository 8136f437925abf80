import { err, ok, type Result } from "@trellis/result";
import { isPlatformOwned } from "../authority/platform-access.ts";
import type { Revoked } from "../authority/revoker.ts";
import { findDeploymentNamed } from "../storage/deployments.ts";
import { findPlatformGrants, savePlatformGrants } from "../storage/grants.ts";
import type { CoreHandlersOf } from "./api.ts";
import { NotKnown, RevisionStale } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { platformOwned } from "./ownership.ts";

interface Changed {
  grants: { deployment: string; revision: number; rpc: string[] };
  /** Set when something was taken away. */
  revoked: Revoked | undefined;
}

/** Who may call the platform's own API. */
export function grantHandlers({ plane, actor }: CoreDeps): CoreHandlersOf<"Grants"> {
  const { config, storage, revoker, outbox } = plane;
  const { queries } = storage;
  const unknown = (id: string) => err(new NotKnown({ data: { kind: "deployment", id } }));
  return {
    "Core.Grants.Get": async (input) => {
      const row = await findDeploymentNamed(queries, input.deployment);
      if (row === undefined) return unknown(input.deployment);
      const { revision, rpc } = await findPlatformGrants(queries, row.id);
      return ok({ grants: { deployment: row.id, revision, rpc: [...rpc] } });
    },

    /** What is taken away ends at once; what is added is taken up by a refresh, which the route notice asks for. */
    "Core.Grants.Set": async ({ rpc, revision: expected, ...input }) => {
      const row = await findDeploymentNamed(queries, input.deployment);
      if (row === undefined) return unknown(input.deployment);
      if (isPlatformOwned(row.participantId)) return platformOwned(row.participantId);
      const { id: deployment, participantId } = row;
      const wanted = [...new Set(rpc)].sort();
      const audit = revoker.audit(actor.name, "grants.set", deployment, { rpc: wanted.join(" ") });
      type Outcome = Result<Changed, InstanceType<typeof RevisionStale>>;
      const changed = await storage.mutate(audit, async (tx): Promise<Outcome> => {
        const before = await findPlatformGrants(tx, deployment);
        if (expected !== undefined && expected !== before.revision)
          return err(new RevisionStale({ data: { revision: before.revision } }));
        const grants = { revision: before.revision + 1, rpc: wanted };
        const now = config.clock.now();
        await savePlatformGrants(tx, { deploymentId: deployment, participantId, grants, now });
        const lost = !wanted.includes("*") && before.rpc.some((name) => !wanted.includes(name));
        const subject = { kind: "deployment", id: deployment } as const;
        const revoked = lost ? await revoker.record(tx, subject, "grants were withdrawn") : undefined;
        if (!lost) await outbox.addRoute(tx, deployment);
        return ok({ grants: { deployment, ...grants }, revoked });
      });
      if (changed.isErr()) return err(changed.error);
      if (changed.value.revoked === undefined) await outbox.flush();
      else await revoker.enforce(changed.value.revoked);
      return ok({ grants: changed.value.grants });
    },
  };
}
