import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { participantsInstall } from "./install.ts";
import { participantsLs } from "./ls.ts";
import { participantsShow } from "./show.ts";

export function participantsCommand(context: CommandContext): Command {
  return new Command("participants")
    .description("what is installed: contracts of services and apps")
    .addCommand(participantsInstall(context))
    .addCommand(participantsLs(context))
    .addCommand(participantsShow(context));
}
