import { toBase64Url } from "@trellis/protocol";
import { err, ok } from "@trellis/result";
import { platformParticipant } from "../admin/participants.ts";
import { isSigningKey } from "../bootstrap/weak-keys.ts";
import { deploymentIdOf, findDeployment, findDeploymentNamed } from "../storage/deployments.ts";
import { findInstance, listInstances, setInstanceDisabled } from "../storage/instances.ts";
import type { CoreHandlersOf } from "./api.ts";
import { IdentityRefused, NotKnown } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { platformOwned } from "./ownership.ts";
import { nextCursor, readPage } from "./page.ts";
import { instanceView } from "./views.ts";

/** Provisioned identities. */
export function instanceHandlers({ plane, actor }: CoreDeps): CoreHandlersOf<"Instances"> {
  const { port, storage, installer, revoker } = plane;
  const { queries } = storage;
  const unknown = (kind: string, id: string) => err(new NotKnown({ data: { kind, id } }));
  return {
    "Core.Instances.List": async (input) => {
      const page = readPage("instances", input);
      if (page.isErr()) return err(page.error);
      const deployment = await deploymentIdOf(queries, input.deployment);
      const { rows, next } = await listInstances(queries, page.value, deployment);
      return ok({ instances: rows.map(instanceView), ...nextCursor("instances", next) });
    },

    "Core.Instances.Get": async (input) => {
      const row = await findInstance(queries, input.id);
      return row === undefined ? unknown("instance", input.id) : ok({ instance: instanceView(row) });
    },

    /** The seed, when one is made, is nowhere but in this answer. */
    "Core.Instances.Provision": async (input) => {
      const deployment = await findDeploymentNamed(queries, input.deployment);
      if (deployment === undefined) return unknown("deployment", input.deployment);
      // Another instance of the platform would be given its route key; one of the command line is an administrator.
      if (deployment.participantId === platformParticipant.id) return platformOwned(platformParticipant.id);
      const made = input.identityKey === undefined ? port.ed25519.keyPair() : undefined;
      const identityKey = input.identityKey ?? toBase64Url(made?.publicKey ?? new Uint8Array());
      if (!isSigningKey(identityKey)) {
        return err(new IdentityRefused({ data: { problem: "identity_malformed" } }));
      }
      const name = input.name ?? deployment.name;
      const { ephemeral = false } = input;
      const row = await installer.provision({ deployment, identityKey, name, ephemeral }, actor);
      if (row.isErr()) return err(new IdentityRefused({ data: { problem: row.error } }));
      return ok({
        instance: instanceView(row.value),
        ...(made === undefined ? {} : { seed: toBase64Url(made.seed) }),
      });
    },

    /** Ends its connections, and rolls the deployment's route at once: the instance knew the key. */
    "Core.Instances.Disable": async (input) => {
      const { id, reason = "disabled" } = input;
      const row = await findInstance(queries, id);
      if (row === undefined) return unknown("instance", id);
      const deployment = await findDeployment(queries, row.deploymentId);
      if (deployment?.participantId === platformParticipant.id) return platformOwned(platformParticipant.id);
      if (row.disabled === 1) return ok({ instance: instanceView(row) });
      const audit = revoker.audit(actor.name, "instance.disable", id, { reason });
      const revoked = await storage.mutate(audit, async (tx) => {
        await setInstanceDisabled(tx, id, true);
        return revoker.record(tx, { kind: "instance", id }, reason);
      });
      await revoker.enforce(revoked);
      return ok({ instance: instanceView({ ...row, disabled: 1 }) });
    },

    "Core.Instances.Enable": async (input) => {
      const row = await findInstance(queries, input.id);
      if (row === undefined) return unknown("instance", input.id);
      if (row.disabled === 0) return ok({ instance: instanceView(row) });
      const audit = revoker.audit(actor.name, "instance.enable", input.id);
      await storage.mutate(audit, (tx) => setInstanceDisabled(tx, input.id, false));
      return ok({ instance: instanceView({ ...row, disabled: 0 }) });
    },
  };
}
