import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import type { CoreClient } from "../../platform/connect-core.ts";

interface Options extends PlatformOptions {
  readonly reason?: string;
}

export function svcDisable(context: CommandContext): Command {
  const command = new Command("disable")
    .description(
      "stop a deployment or an instance: its connections end at once, and it is refused from then on",
    )
    .argument("<deployment-or-instance>", "name or id of a deployment, or id of an instance")
    .option("--reason <text>", "what connections are told; default: disabled")
    .addHelpText("after", "\nExamples:\n  trellis svc disable acme.orders-service --reason 'bad release'");
  return onPlatform(command).action((target: string, options: Options) =>
    withCore(context, options, async (core) => {
      const reason = options.reason === undefined ? {} : { reason: options.reason };
      show(
        context,
        "disabled",
        await change(target, {
          deployment: (id) => core.rpc.core.deploymentsDisable({ id, ...reason }),
          instance: (id) => core.rpc.core.instancesDisable({ id, ...reason }),
        }),
      );
    }),
  );
}

export function svcEnable(context: CommandContext): Command {
  const command = new Command("enable")
    .description("let a disabled deployment or instance connect again")
    .argument("<deployment-or-instance>", "name or id of a deployment, or id of an instance");
  return onPlatform(command).action((target: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      show(
        context,
        "enabled",
        await change(target, {
          deployment: (id) => core.rpc.core.deploymentsEnable({ id }),
          instance: (id) => core.rpc.core.instancesEnable({ id }),
        }),
      );
    }),
  );
}

export function svcApply(context: CommandContext): Command {
  const command = new Command("apply")
    .description("move a deployment to the newest revision of its participant")
    .argument("<deployment>", "name or id of the deployment")
    .addHelpText(
      "after",
      "\nProcesses of the old revision go on until they end; new ones must be of the new one.",
    );
  return onPlatform(command).action((id: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const { deployment } = await core.rpc.core.deploymentsUpdate({ id }).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(deployment);
      terminal.line(`${deployment.name} runs ${deployment.participant.digest.slice(0, 12)}`);
    }),
  );
}

type Deployed = Awaited<ReturnType<CoreClient["rpc"]["core"]["deploymentsDisable"]>>;
type Provisioned = Awaited<ReturnType<CoreClient["rpc"]["core"]["instancesDisable"]>>;

/** Tries the target as a deployment, then as an instance. */
async function change(
  target: string,
  ways: { deployment(id: string): PromiseLike<Deployed>; instance(id: string): PromiseLike<Provisioned> },
): Promise<{ id: string; name: string }> {
  const deployment = await ways.deployment(target);
  if (deployment.isOk()) return deployment.value.deployment;
  if (deployment.error.type !== "NotKnown" || target.includes(".")) throw deployment.error;
  const instance = await ways.instance(target);
  if (instance.isOk()) return instance.value.instance;
  // Neither: the deployment's answer is the better one to show.
  throw instance.error.type === "NotKnown" ? deployment.error : instance.error;
}

function show({ terminal }: CommandContext, word: string, row: { id: string; name: string }): void {
  if (terminal.json) terminal.value(row);
  else terminal.line(`${row.name} is ${word}  (${row.id})`);
}
