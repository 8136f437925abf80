import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../context.ts";
import { isOfCommand } from "../contract/of-command.ts";
import { type Column, formatAge } from "../output/table.ts";
import { type ConnectionRow, listConnections, listDeployments } from "../platform/lists.ts";

interface Options extends PlatformOptions {
  readonly all?: boolean;
}

type Row = ConnectionRow & { readonly name: string };

export function servicesCommand(context: CommandContext): Command {
  const command = new Command("services")
    .description("what is connected now")
    .option("--all", "also this command itself, and connections that are gone and may come back")
    .addHelpText("after", "\nExamples:\n  trellis services\n  trellis services --json | jq '.[].name'");
  return onPlatform(command).action((options: Options) =>
    withCore(context, options, async (core) => {
      const names = new Map((await listDeployments(core)).map(({ id, name }) => [id, name]));
      const rows = (await listConnections(core))
        .filter(({ state, participant }) => {
          return options.all === true || (state === "connected" && !isOfCommand(participant.id));
        })
        .map((row): Row => ({ ...row, name: names.get(row.deployment) ?? row.deployment }))
        .sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
      context.terminal.rows(columns(Date.now()), rows, "Nothing is connected.");
    }),
  );
}

function columns(now: number): Column<Row>[] {
  return [
    { heading: "SERVICE", cell: ({ name }) => name },
    { heading: "STATE", cell: ({ state }) => state },
    { heading: "SINCE", cell: ({ createdAt }) => formatAge(now - createdAt) },
    { heading: "REVISION", cell: ({ participant }) => participant.digest.slice(0, 12) },
    { heading: "CONNECTION", cell: ({ id }) => id },
  ];
}
