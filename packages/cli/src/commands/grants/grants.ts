import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { grantsLs } from "./ls.ts";
import { grantsSet } from "./set.ts";

export function grantsCommand(context: CommandContext): Command {
  return new Command("grants")
    .description("who may call the platform's own API")
    .addCommand(grantsLs(context))
    .addCommand(grantsSet(context));
}
