import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { isOfCommand } from "../../contract/of-command.ts";
import { type Column, formatAge } from "../../output/table.ts";
import { listParticipants, type ParticipantRow } from "../../platform/lists.ts";

interface Options extends PlatformOptions {
  readonly all?: boolean;
}

export function participantsLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("list what is installed")
    .option("--all", "also those of this command itself");
  return onPlatform(command).action((options: Options) =>
    withCore(context, options, async (core) => {
      const all = await listParticipants(core);
      const rows = options.all === true ? all : all.filter(({ id }) => !isOfCommand(id));
      context.terminal.rows(columns(Date.now()), rows, "Nothing is installed.");
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
