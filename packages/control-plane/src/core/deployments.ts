import { err, ok } from "@trellis/result";
import { isPlatformOwned } from "../authority/platform-access.ts";
import { findDeploymentNamed, listDeployments, setDeploymentDisabled } from "../storage/deployments.ts";
import { findParticipant, findParticipantByDigest } from "../storage/participants.ts";
import type { CoreHandlersOf } from "./api.ts";
import { bind, bindingViews } from "./bindings.ts";
import { NameRefused, NotKnown } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { platformOwned } from "./ownership.ts";
import { nextCursor, readPage } from "./page.ts";
import { deploymentView } from "./views.ts";

/** Participants as they are deployed. */
export function deploymentHandlers({ plane, actor }: CoreDeps): CoreHandlersOf<"Deployments"> {
  const { storage, installer, revoker } = plane;
  const { queries } = storage;
  const unknown = (id: string) => err(new NotKnown({ data: { kind: "deployment", id } }));
  return {
    "Core.Deployments.List": async (input) => {
      const page = readPage("deployments", input);
      if (page.isErr()) return err(page.error);
      const { rows, next } = await listDeployments(queries, page.value);
      return ok({ deployments: rows.map(deploymentView), ...nextCursor("deployments", next) });
    },

    "Core.Deployments.Get": async (input) => {
      const row = await findDeploymentNamed(queries, input.id);
      if (row === undefined) return unknown(input.id);
      return ok({ deployment: deploymentView(row), bindings: await bindingViews(queries, row.id) });
    },

    "Core.Deployments.Create": async (input) => {
      const participant = await findParticipant(queries, input.participant);
      if (participant === undefined) {
        return err(new NotKnown({ data: { kind: "participant", id: input.participant } }));
      }
      if (isPlatformOwned(participant.id)) return platformOwned(participant.id);
      const name = input.name ?? participant.id;
      if (isPlatformOwned(name)) return err(new NameRefused({ data: { name, problem: "name_illegal" } }));
      const created = await installer.deploy(participant, name, actor);
      if (created.isErr()) return err(new NameRefused({ data: { name, problem: created.error } }));
      return ok({ deployment: deploymentView(created.value) });
    },

    /** Running processes of an older revision go on until they end; new ones must run this revision. */
    "Core.Deployments.Update": async (input) => {
      const row = await findDeploymentNamed(queries, input.id);
      if (row === undefined) return unknown(input.id);
      if (isPlatformOwned(row.participantId)) return platformOwned(row.participantId);
      const participant =
        input.digest === undefined
          ? await findParticipant(queries, row.participantId)
          : await findParticipantByDigest(queries, row.participantId, input.digest);
      if (participant === undefined) {
        return err(new NotKnown({ data: { kind: "participant", id: input.digest ?? row.participantId } }));
      }
      if (participant.digest === row.participantDigest) return ok({ deployment: deploymentView(row) });
      return ok({ deployment: deploymentView(await installer.redeploy(row, participant.digest, actor)) });
    },

    "Core.Deployments.Bind": (input) => bind({ plane, actor }, input),

    /** Ends every connection of the deployment; callers learn that its route is void. */
    "Core.Deployments.Disable": async (input) => {
      const { reason = "disabled" } = input;
      const row = await findDeploymentNamed(queries, input.id);
      if (row === undefined) return unknown(input.id);
      const { id } = row;
      if (isPlatformOwned(row.participantId)) return platformOwned(row.participantId);
      if (row.disabled === 1) return ok({ deployment: deploymentView(row) });
      const audit = revoker.audit(actor.name, "deployment.disable", id, { reason });
      const revoked = await storage.mutate(audit, async (tx) => {
        await setDeploymentDisabled(tx, id, true);
        return revoker.record(tx, { kind: "deployment", id }, reason);
      });
      await revoker.enforce(revoked);
      return ok({ deployment: deploymentView({ ...row, ...revoked.rolled }) });
    },

    "Core.Deployments.Enable": async (input) => {
      const row = await findDeploymentNamed(queries, input.id);
      if (row === undefined) return unknown(input.id);
      if (row.disabled === 0) return ok({ deployment: deploymentView(row) });
      return ok({ deployment: deploymentView(await installer.enable(row, actor)) });
    },
  };
}
