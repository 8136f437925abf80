import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { type Column, formatAge } from "../../output/table.ts";
import { listParticipants, type ParticipantRow } from "../../platform/lists.ts";

export function participantsLs(context: CommandContext): Command {
  return onPlatform(new Command("ls").alias("list").description("list what is installed")).action(
    (options: PlatformOptions) =>
      withCore(context, options, async (core) => {
        context.terminal.rows(columns(Date.now()), await listParticipants(core), "Nothing is installed.");
      }),
  );
}

function columns(now: number): Column<ParticipantRow>[] {
  return [
    { heading: "PARTICIPANT", cell: ({ id }) => id },
    { heading: "KIND", cell: ({ kind }) => kind },
    { heading: "REVISION", cell: ({ revision }) => String(revision) },
    { heading: "INSTALLED", cell: ({ installedAt }) => `${formatAge(now - installedAt)} ago` },
    { heading: "DIGEST", cell: ({ digest }) => digest.slice(0, 12) },
  ];
}
