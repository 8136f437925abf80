import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { listDeployments } from "../../platform/lists.ts";

interface Options extends PlatformOptions {
  readonly none?: boolean;
}

export function svcBind(context: CommandContext): Command {
  const command = new Command("bind")
    .description("choose which deployment provides an API that another one uses, where several do")
    .argument("<deployment>", "name or id of the deployment that uses the API")
    .argument("[api]", "id of the API; without it, the choices that were made are listed")
    .argument("[provider]", "name or id of the deployment that is to provide it")
    .option("--none", "withdraw the choice")
    .addHelpText(
      "after",
      `
Connected processes of the deployment go over to the provider by themselves; what the old one has in hand it answers.

Examples:
  trellis svc bind acme.shop acme.orders@v1 acme.orders-eu
  trellis svc bind acme.shop acme.orders@v1 --none
  trellis svc bind acme.shop`,
    );
  return onPlatform(command).action(
    (...[deployment, api, provider, options]: [string, string | undefined, string | undefined, Options]) => {
      const none = options.none === true;
      const isWhole = none
        ? api !== undefined && provider === undefined
        : (api === undefined) === (provider === undefined);
      if (!isWhole)
        throw new CliFailure("Name the deployment that is to provide the API, or --none.", {
          exitCode: EXIT.usage,
          hint: `\`trellis call Core.Apis.Get '{"id":"${api ?? "acme.orders@v1"}"}'\` shows which deployments do.`,
        });
      return withCore(context, options, async (core) => {
        const { rpc } = core;
        const choice = { id: deployment, ...(provider === undefined ? {} : { provider }) };
        const { bindings } =
          api === undefined
            ? await rpc.core.deploymentsGet({ id: deployment }).orThrow()
            : await rpc.core.deploymentsBind({ ...choice, api }).orThrow();
        const names = new Map((await listDeployments(core)).map(({ id, name }) => [id, name]));
        const rows = bindings.map((row) => ({ ...row, name: names.get(row.provider) ?? row.provider }));
        context.terminal.rows(
          [
            { heading: "API", cell: (row) => row.api },
            { heading: "PROVIDER", cell: (row) => row.name },
            { heading: "ID", cell: (row) => row.provider },
          ],
          rows,
          `Nothing was chosen for ${deployment}: each API that it uses comes from the only one that provides it.`,
        );
      });
    },
  );
}
