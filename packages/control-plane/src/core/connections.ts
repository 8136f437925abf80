import { err, ok } from "@trellis/result";
import { platformParticipant } from "../admin/participants.ts";
import { findConnection, listConnections } from "../storage/connections.ts";
import { deploymentIdOf } from "../storage/deployments.ts";
import type { CoreHandlersOf } from "./api.ts";
import { NotKnown } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { platformOwned } from "./ownership.ts";
import { nextCursor, readPage } from "./page.ts";
import { connectionView } from "./views.ts";

/** Live sessions. */
export function connectionHandlers({ plane, actor }: CoreDeps): CoreHandlersOf<"Connections"> {
  const { storage, tracker, revoker } = plane;
  const { queries } = storage;
  const unknown = (id: string) => err(new NotKnown({ data: { kind: "connection", id } }));
  return {
    "Core.Connections.List": async (input) => {
      const page = readPage("connections", input);
      if (page.isErr()) return err(page.error);
      await tracker.flush();
      const deployment = await deploymentIdOf(queries, input.deployment);
      const { rows, next } = await listConnections(queries, page.value, deployment);
      return ok({ connections: rows.map(connectionView), ...nextCursor("connections", next) });
    },

    "Core.Connections.Get": async (input) => {
      await tracker.flush();
      const row = await findConnection(queries, input.id);
      return row === undefined ? unknown(input.id) : ok({ connection: connectionView(row) });
    },

    "Core.Connections.Kick": async (input) => {
      const row = await findConnection(queries, input.id);
      if (row === undefined) return unknown(input.id);
      if (row.participantId === platformParticipant.id) return platformOwned(row.participantId);
      const kicked = tracker.socketOf(input.id) !== undefined;
      if (input.revoke === true)
        await revoker.revokeConnection(input.id, input.reason ?? "kicked", actor.name);
      else await tracker.kick(input.id);
      return ok({ kicked });
    },
  };
}
