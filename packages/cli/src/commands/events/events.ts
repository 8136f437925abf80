import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { eventsDlqLs } from "./dlq-ls.ts";
import { eventsDlqDiscard, eventsDlqReplay } from "./dlq-settle.ts";
import { eventsDlqShow } from "./dlq-show.ts";
import { eventsTail } from "./tail.ts";

export function eventsCommand(context: CommandContext): Command {
  const dlq = new Command("dlq")
    .description("dead letters: events that a consumer could not handle")
    .addCommand(eventsDlqLs(context))
    .addCommand(eventsDlqShow(context))
    .addCommand(eventsDlqReplay(context))
    .addCommand(eventsDlqDiscard(context));
  return new Command("events")
    .description("events, their consumers and dead letters")
    .addCommand(eventsTail(context))
    .addCommand(dlq);
}
