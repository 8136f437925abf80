import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { isOfCommand } from "../../contract/of-command.ts";
import { type Column, formatAge } from "../../output/table.ts";
import {
  type DeploymentRow,
  type InstanceRow,
  listConnections,
  listDeployments,
  listInstances,
} from "../../platform/lists.ts";

interface Options extends PlatformOptions {
  readonly all?: boolean;
}

type Counted<Row> = Row & { readonly connected: number };
type Deployment = Counted<DeploymentRow> & { readonly instances: number };

export function svcLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("list deployments, or the instances of one")
    .argument("[deployment]", "name or id of a deployment, to list its instances")
    .option("--all", "also those of this command itself");
  return onPlatform(command).action((deployment: string | undefined, options: Options) =>
    withCore(context, options, async (core) => {
      const { terminal } = context;
      const online = (await listConnections(core)).filter(({ state }) => state === "connected");
      const count = (belongs: (row: (typeof online)[number]) => boolean) => online.filter(belongs).length;
      if (deployment !== undefined) {
        const { id } = (await core.rpc.core.deploymentsGet({ id: deployment }).orThrow()).deployment;
        const rows = (await listInstances(core, id)).map((row) => ({
          ...row,
          connected: count(({ instance }) => instance === row.id),
        }));
        return terminal.rows(instanceColumns(Date.now()), rows, `${deployment} has no instances.`);
      }
      const instances = await listInstances(core);
      const rows = (await listDeployments(core))
        .filter(({ participant }) => options.all === true || !isOfCommand(participant.id))
        .map((row) => ({
          ...row,
          instances: instances.filter(({ deployment: of }) => of === row.id).length,
          connected: count(({ deployment: of }) => of === row.id),
        }));
      terminal.rows(deploymentColumns, rows, "Nothing is deployed.");
    }),
  );
}

const deploymentColumns: Column<Deployment>[] = [
  { heading: "DEPLOYMENT", cell: ({ name }) => name },
  { heading: "PARTICIPANT", cell: ({ participant }) => participant.id },
  { heading: "STATE", cell: ({ disabled }) => (disabled ? "disabled" : "enabled") },
  { heading: "INSTANCES", cell: ({ instances }) => String(instances) },
  { heading: "CONNECTED", cell: ({ connected }) => String(connected) },
  { heading: "ID", cell: ({ id }) => id },
];

function instanceColumns(now: number): Column<Counted<InstanceRow>>[] {
  return [
    { heading: "INSTANCE", cell: ({ name }) => name },
    { heading: "STATE", cell: ({ disabled }) => (disabled ? "disabled" : "enabled") },
    { heading: "CONNECTED", cell: ({ connected }) => String(connected) },
    { heading: "CREATED", cell: ({ createdAt }) => `${formatAge(now - createdAt)} ago` },
    { heading: "ID", cell: ({ id }) => id },
  ];
}
