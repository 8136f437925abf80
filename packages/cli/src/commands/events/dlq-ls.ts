import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { allPages } from "../../platform/pages.ts";

interface Options extends PlatformOptions {
  readonly consumer?: string;
  readonly reason?: string;
}

export type LetterRow = Awaited<ReturnType<typeof listLetters>>[number];
type ConsumerRow = Awaited<ReturnType<typeof listConsumers>>[number];

export function eventsDlqLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("count the dead letters of all consumers, or list those of a deployment")
    .argument("[deployment]", "name or id of a deployment")
    .option("--consumer <name>", "only those of one consumer, as the contract calls it")
    .option("--reason <reason>", "only those with this reason, for example exhausted or schema_mismatch")
    .addHelpText(
      "after",
      "\nExamples:\n  trellis events dlq ls\n  trellis events dlq ls acme.billing --consumer orders",
    );
  return onPlatform(command).action((deployment: string | undefined, options: Options) =>
    withCore(context, options, async (core) => {
      const { terminal } = context;
      if (deployment === undefined)
        return terminal.rows(consumerColumns, await listConsumers(core), "Nobody declares a consumer.");
      const rows = await listLetters(core, { deployment, ...filterOf(options) });
      terminal.rows(letterColumns(Date.now()), rows, "There are no dead letters.");
    }),
  );
}

export function filterOf({ consumer, reason }: Options): { consumer?: string; reason?: string } {
  return { ...(consumer === undefined ? {} : { consumer }), ...(reason === undefined ? {} : { reason }) };
}

/** All dead letters of a deployment, or those that fit. */
export function listLetters(
  { rpc }: CoreClient,
  filter: { deployment: string; consumer?: string; reason?: string },
) {
  return allPages(async (at) => {
    const { deadLetters: rows, ...next } = await rpc.events.deadLettersList({ ...at, ...filter }).orThrow();
    return { rows, ...next };
  });
}

function listConsumers({ rpc }: CoreClient) {
  return allPages(async (at) => {
    const { consumers: rows, ...next } = await rpc.events.consumersList(at).orThrow();
    return { rows, ...next };
  });
}

const consumerColumns: Column<ConsumerRow>[] = [
  { heading: "DEPLOYMENT", cell: ({ name }) => name },
  { heading: "CONSUMER", cell: ({ consumer, attached }) => (attached ? consumer : `${consumer} (detached)`) },
  { heading: "DEAD LETTERS", cell: ({ deadLetters }) => String(deadLetters) },
  { heading: "PENDING", cell: ({ pending }) => String(pending) },
  { heading: "UNSETTLED", cell: ({ unsettled }) => String(unsettled) },
  { heading: "REDELIVERED", cell: ({ redelivered }) => String(redelivered) },
];

function letterColumns(now: number): Column<LetterRow>[] {
  return [
    { heading: "SEQUENCE", cell: ({ sequence }) => String(sequence) },
    { heading: "CONSUMER", cell: ({ consumer }) => consumer },
    { heading: "EVENT", cell: ({ event, subject }) => event || subject },
    { heading: "REASON", cell: ({ reason }) => reason },
    { heading: "ATTEMPTS", cell: ({ attempts }) => String(attempts) },
    { heading: "DEAD", cell: ({ at }) => `${formatAge(now - at)} ago` },
    { heading: "ERROR", cell: ({ error }) => `${error.type}: ${error.message}`.slice(0, 80) },
  ];
}
