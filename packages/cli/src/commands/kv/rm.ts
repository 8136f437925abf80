import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { bucketArgument, onResource } from "../../platform/resource-place.ts";
import { revisionOf } from "./get.ts";

interface Options extends PlatformOptions {
  readonly revision?: number;
}

export function kvRm(context: CommandContext): Command {
  const command = new Command("rm")
    .alias("delete")
    .description("delete a key, readable or not")
    .argument(...bucketArgument)
    .argument("<key>")
    .option("--revision <number>", "only if it is at this revision", revisionOf);
  return onPlatform(command).action((text: string, key: string, options: Options) =>
    withCore(context, options, (core) =>
      onResource(core, { kind: "kv", text }, async (place) => {
        const condition = options.revision === undefined ? {} : { revision: options.revision };
        const written = await core.rpc.resources.kvDelete({ ...place, key, ...condition }).orThrow();
        if (context.terminal.json) return context.terminal.value({ key, ...written });
        context.terminal.line(`${key} was deleted`);
      }),
    ),
  );
}
