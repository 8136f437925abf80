import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { natsConfig } from "./config.ts";

export function natsCommand(context: CommandContext): Command {
  return new Command("nats").description("the broker below Trellis").addCommand(natsConfig(context));
}
