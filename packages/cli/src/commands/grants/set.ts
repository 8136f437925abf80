import { Command, InvalidArgumentError } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { similar } from "../../output/similar.ts";

interface Options extends PlatformOptions {
  readonly none?: boolean;
  readonly revision?: number;
}

export function grantsSet(context: CommandContext): Command {
  const command = new Command("set")
    .description("say which actions of the platform's own API a deployment may call, instead of those it had")
    .argument("<deployment>", "name or id of the deployment")
    .argument("[actions...]", "for example Core.Connections.List; '*' for all, later ones too")
    .option("--none", "take everything away")
    .option("--revision <number>", "refuse unless the grants still have this revision", toRevision)
    .addHelpText(
      "after",
      `
Its contract has to use the actions as well. What is taken away ends at once: the deployment's connections are closed.

Examples:
  trellis grants set acme.console Core.Deployments.List Core.Connections.List
  trellis grants set acme.console --none`,
    );
  return onPlatform(command).action(async (deployment: string, actions: string[], options: Options) => {
    await requireKnown(actions, options.none === true);
    return withCore(context, options, async (core) => {
      const { revision } = options;
      const input = { deployment, rpc: actions, ...(revision === undefined ? {} : { revision }) };
      const { grants } = await core.rpc.core.grantsSet(input).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(grants);
      const what = grants.rpc.length === 0 ? "nothing" : grants.rpc.join(", ");
      terminal.line(`${deployment} may call ${what}  (revision ${grants.revision})`);
    });
  });
}

/** The platform takes any name, also of actions that are yet to come: a slip of the hand is found here. */
async function requireKnown(actions: readonly string[], none: boolean): Promise<void> {
  if (none !== (actions.length === 0))
    throw new CliFailure(none ? "--none takes no actions." : "Name the actions to grant, or --none.", {
      exitCode: EXIT.usage,
      hint: "`trellis grants ls <deployment>` shows what it has.",
    });
  const { coreApi } = await import("@trellis/control-plane/core");
  const known = ["*", ...Object.keys(coreApi.rpc)];
  const wrong = actions.find((action) => !known.includes(action));
  if (wrong === undefined) return;
  const near = similar(wrong, known);
  throw new CliFailure(`The platform's API has no action ${wrong}.`, {
    exitCode: EXIT.usage,
    hint: near === undefined ? `There is: ${known.slice(1).join(", ")}` : `Did you mean ${near}?`,
  });
}

function toRevision(text: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw new InvalidArgumentError("A revision is a number, as `grants ls` shows it.");
  return Number(text);
}
