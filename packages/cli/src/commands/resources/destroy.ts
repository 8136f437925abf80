import { ResourceAttached } from "@trellis/control-plane/core";
import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { listResources, onResource, placeOf, type ResourceRow } from "../../platform/resource-place.ts";

interface Options extends PlatformOptions {
  readonly kind?: ResourceRow["kind"];
  readonly force?: boolean;
}

export function resourcesDestroy(context: CommandContext): Command {
  const command = new Command("destroy")
    .description("delete a resource with everything in it, for ever")
    .argument("<deployment/alias>", "the resource")
    .option("--kind <kind>", "kv, store or consumer, where several have the alias")
    .option("--force", "also when the deployment's contract still declares it")
    .addHelpText(
      "after",
      `
A resource whose declaration was removed is detached and keeps its data, until it is declared again or destroyed.

Examples:
  trellis resources ls --detached
  trellis resources destroy acme.field/old-photos`,
    );
  return onPlatform(command).action((text: string, options: Options) =>
    withCore(context, options, async (core) => {
      const { alias } = placeOf(text);
      const all = await listResources(core);
      const named = all.filter((row) => row.alias === alias && isNamed(row, placeOf(text).deployment));
      const kinds = named.map(({ kind }) => kind).filter((kind) => kind === (options.kind ?? kind));
      const [kind = "kv", ...others] = kinds;
      if (others.length > 0) {
        throw new CliFailure(`Several resources are called ${text}.`, {
          exitCode: EXIT.usage,
          hint: `Say which: ${kinds.map((each) => `--kind ${each}`).join(", or ")}`,
        });
      }
      await onResource(core, { kind, text }, async (place) => {
        const destroyed = await core.rpc.resources.destroy({ ...place, kind, force: options.force === true });
        if (destroyed.isErr() && destroyed.error instanceof ResourceAttached) {
          throw new CliFailure(destroyed.error.message, {
            exitCode: EXIT.refused,
            hint: "Remove it from the contract first, or say --force: the running services lose it and its data.",
          });
        }
        const answer = destroyed.orThrow();
        if (context.terminal.json) return context.terminal.value(answer);
        context.terminal.line(`destroyed ${kind} ${text}`);
      });
    }),
  );
}

function isNamed({ deployment, service }: ResourceRow, name: string): boolean {
  return deployment === name || service === name;
}
