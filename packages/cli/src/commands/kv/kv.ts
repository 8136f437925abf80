import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { kvGet } from "./get.ts";
import { kvLs } from "./ls.ts";
import { kvPut } from "./put.ts";
import { kvRm } from "./rm.ts";
import { kvWatch } from "./watch.ts";

export function kvCommand(context: CommandContext): Command {
  return new Command("kv")
    .description("what is in the buckets of deployments")
    .addCommand(kvLs(context))
    .addCommand(kvGet(context))
    .addCommand(kvPut(context))
    .addCommand(kvRm(context))
    .addCommand(kvWatch(context));
}
