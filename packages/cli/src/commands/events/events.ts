import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import type { Column } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { eventsDlq } from "./dlq.ts";

type ConsumerRow = Awaited<
  ReturnType<ReturnType<CoreClient["rpc"]["events"]["consumersList"]>["orThrow"]>
>["consumers"][number];

export function eventsCommand(context: CommandContext): Command {
  return new Command("events")
    .description("events: who consumes them, and what could not be handled")
    .addCommand(eventsConsumers(context))
    .addCommand(eventsDlq(context));
}

function eventsConsumers(context: CommandContext): Command {
  const command = new Command("consumers")
    .description("list durable consumers with what they still have to do")
    .argument("[deployment]", "name or id of a deployment");
  return onPlatform(command).action((deployment: string | undefined, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const asked = deployment === undefined ? {} : { deployment };
      const { consumers } = await core.rpc.events.consumersList(asked).orThrow();
      context.terminal.rows(columns, consumers, "There are no consumers.");
    }),
  );
}

const columns: Column<ConsumerRow>[] = [
  { heading: "CONSUMER", cell: ({ service, consumer }) => `${service}/${consumer}` },
  { heading: "PENDING", cell: ({ pending }) => String(pending) },
  { heading: "RUNNING", cell: ({ running }) => String(running) },
  { heading: "REDELIVERED", cell: ({ redelivered }) => String(redelivered) },
  { heading: "DEAD", cell: ({ deadLetters }) => String(deadLetters) },
];
