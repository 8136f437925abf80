import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { readInput } from "../../input/read-input.ts";
import { bucketArgument, onResource } from "../../platform/resource-place.ts";
import { revisionOf } from "./get.ts";

interface Options extends PlatformOptions {
  readonly file?: string;
  readonly revision?: number;
}

const example = `trellis kv put acme.field/sites oslo '{"name":"Oslo"}'`;

export function kvPut(context: CommandContext): Command {
  const command = new Command("put")
    .description("write a value, which must fit the contract")
    .argument(...bucketArgument)
    .argument("<key>")
    .argument("[json]", "the value; - reads it from standard input")
    .option("--file <file>", "read the value from a file")
    .option("--revision <number>", "only over this revision; 0: only where nothing is", revisionOf)
    .addHelpText(
      "after",
      `\nExamples:\n  ${example}\n  trellis kv put acme.field/sites oslo --file oslo.json`,
    );
  return onPlatform(command).action(
    async (...given: [text: string, key: string, json: string | undefined, options: Options]) => {
      const [text, key, json, options] = given;
      const { file, revision } = options;
      const value = await readInput(context, { json, file, example });
      if (value === undefined)
        throw new CliFailure("There is no value to write.", { exitCode: EXIT.usage, hint: example });
      await withCore(context, options, (core) =>
        onResource(core, { kind: "kv", text }, async (place) => {
          const condition = revision === undefined ? {} : { revision };
          const written = await core.rpc.resources.kvPut({ ...place, key, value, ...condition }).orThrow();
          if (context.terminal.json) return context.terminal.value({ key, ...written });
          context.terminal.line(`${key} is at revision ${written.revision}`);
        }),
      );
    },
  );
}
