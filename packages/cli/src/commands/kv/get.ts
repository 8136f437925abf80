import { NotKnown } from "@trellis/control-plane/core";
import { Command, InvalidArgumentError } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { similar } from "../../output/similar.ts";
import { bucketArgument, onResource } from "../../platform/resource-place.ts";
import { keysOf } from "./ls.ts";

interface Options extends PlatformOptions {
  readonly revision?: number;
}

export function kvGet(context: CommandContext): Command {
  const command = new Command("get")
    .description("show the value of a key")
    .argument(...bucketArgument)
    .argument("<key>")
    .option("--revision <number>", "the value at that revision, as long as it is kept", revisionOf)
    .addHelpText(
      "after",
      `
The value goes to standard output as JSON; with --json also its revision and its time.

Examples:
  trellis kv get acme.field/sites oslo
  trellis kv get acme.field/sites oslo --json | jq .revision`,
    );
  return onPlatform(command).action((text: string, key: string, options: Options) =>
    withCore(context, options, (core) =>
      onResource(core, { kind: "kv", text }, async (place) => {
        const { revision } = options;
        const found = await core.rpc.resources.kvGet({
          ...place,
          key,
          ...(revision === undefined ? {} : { revision }),
        });
        if (found.isErr() && found.error instanceof NotKnown && found.error.data.kind === "key") {
          const near = similar(key, await keysOf(core, place));
          const hint =
            near === undefined ? `\`trellis kv ls ${text}\` lists the keys.` : `Did you mean ${near}?`;
          throw new CliFailure(`${text} has no key "${key}".`, { exitCode: EXIT.notFound, hint });
        }
        const { entry } = found.orThrow();
        const { terminal } = context;
        if (terminal.json) return terminal.value(entry);
        if (entry.kind === "value") return terminal.value(entry.value);
        throw new CliFailure(`The value cannot be read: ${entry.problem}`, {
          hint: `Revision ${entry.revision}. It can be put anew, and removed: trellis kv rm ${text} ${key}`,
        });
      }),
    ),
  );
}

/** Reads a revision from the command line. */
export function revisionOf(text: string): number {
  const revision = Number(text);
  if (Number.isSafeInteger(revision) && revision >= 0) return revision;
  throw new InvalidArgumentError("A revision is a whole number.");
}
