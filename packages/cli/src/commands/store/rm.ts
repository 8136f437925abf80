import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { onResource, storeArgument } from "../../platform/resource-place.ts";
import { noObject } from "./get.ts";

export function storeRm(context: CommandContext): Command {
  const command = new Command("rm")
    .alias("delete")
    .description("delete an object")
    .argument(...storeArgument)
    .argument("<key>");
  return onPlatform(command).action((text: string, key: string, options: PlatformOptions) =>
    withCore(context, options, (core) =>
      onResource(core, { kind: "store", text }, async (place) => {
        const { deleted } = await core.rpc.resources.storeDelete({ ...place, key }).orThrow();
        if (!deleted) throw await noObject(core, { text, place, key });
        if (context.terminal.json) return context.terminal.value({ key, deleted });
        context.terminal.line(`${key} was deleted`);
      }),
    ),
  );
}
