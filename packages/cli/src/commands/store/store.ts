import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { storeGet } from "./get.ts";
import { storeLs } from "./ls.ts";
import { storePut } from "./put.ts";
import { storeRm } from "./rm.ts";

export function storeCommand(context: CommandContext): Command {
  return new Command("store")
    .description("what is in the object stores of deployments")
    .addCommand(storeLs(context))
    .addCommand(storeGet(context))
    .addCommand(storePut(context))
    .addCommand(storeRm(context));
}
