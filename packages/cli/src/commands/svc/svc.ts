import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { svcBind } from "./bind.ts";
import { svcCreate } from "./create.ts";
import { svcLs } from "./ls.ts";
import { svcProvision } from "./provision.ts";
import { svcApply, svcDisable, svcEnable } from "./switch.ts";

export function svcCommand(context: CommandContext): Command {
  return new Command("svc")
    .description("deployments and their instances")
    .addCommand(svcCreate(context))
    .addCommand(svcProvision(context))
    .addCommand(svcApply(context))
    .addCommand(svcBind(context))
    .addCommand(svcDisable(context))
    .addCommand(svcEnable(context))
    .addCommand(svcLs(context));
}
