import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { resourcesDestroy } from "./destroy.ts";
import { resourcesLs } from "./ls.ts";

export function resourcesCommand(context: CommandContext): Command {
  return new Command("resources")
    .description("what deployments keep: buckets, stores, consumers, jobs")
    .addCommand(resourcesLs(context))
    .addCommand(resourcesDestroy(context));
}
