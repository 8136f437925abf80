import { err, ok } from "@trellis/result";
import { readArtifact } from "../authority/artifact.ts";
import { findParticipant, listParticipants } from "../storage/participants.ts";
import type { CoreHandlersOf } from "./api.ts";
import { ArtifactInvalid, NotKnown } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { nextCursor, readPage } from "./page.ts";
import { participantView } from "./views.ts";

/** What is installed. */
export function participantHandlers({ plane, actor }: CoreDeps): CoreHandlersOf<"Participants"> {
  const { queries } = plane.storage;
  return {
    "Core.Participants.List": async (input) => {
      const page = readPage("participants", input);
      if (page.isErr()) return err(page.error);
      const { rows, next } = await listParticipants(queries, page.value);
      return ok({ participants: rows.map(participantView), ...nextCursor("participants", next) });
    },

    "Core.Participants.Get": async (input) => {
      const row = await findParticipant(queries, input.id);
      if (row === undefined) return err(new NotKnown({ data: { kind: "participant", id: input.id } }));
      const artifact = JSON.parse(row.artifact) as Record<string, unknown>;
      return ok({ participant: participantView(row), artifact });
    },

    "Core.Participants.Install": async (input) => {
      const read = readArtifact(input.artifact);
      if (read.isErr()) return err(new ArtifactInvalid({ data: { problem: read.error } }));
      const { row, changed } = await plane.installer.install(read.value, actor);
      return ok({ participant: participantView(row), changed });
    },
  };
}
