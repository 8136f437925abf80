import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";

interface Options extends PlatformOptions {
  readonly name?: string;
}

export function svcCreate(context: CommandContext): Command {
  const command = new Command("create")
    .description("deploy an installed participant")
    .argument("<participant>", "id of the participant")
    .option("--name <name>", "name of the deployment; default: the participant's id")
    .addHelpText(
      "after",
      "\nExamples:\n  trellis svc create acme.orders-service\n  trellis svc create acme.orders-service --name acme.orders-eu",
    );
  return onPlatform(command).action((participant: string, options: Options) =>
    withCore(context, options, async (core) => {
      const { name } = options;
      const input = { participant, ...(name === undefined ? {} : { name }) };
      const { deployment } = await core.rpc.core.deploymentsCreate(input).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(deployment);
      terminal.line(`${terminal.colours.green("+")} ${deployment.name}  (${deployment.id})`);
      terminal.note(`Next: trellis svc provision ${deployment.name}`);
    }),
  );
}
