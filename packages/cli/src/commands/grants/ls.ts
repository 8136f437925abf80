import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import type { Column } from "../../output/table.ts";
import { listDeployments } from "../../platform/lists.ts";

interface Granted {
  readonly deployment: string;
  readonly name: string;
  readonly revision: number;
  readonly rpc: readonly string[];
}

export function grantsLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("list which deployments may call what of the platform's own API")
    .argument("[deployment]", "name or id of one deployment; default: all that were granted anything");
  return onPlatform(command).action((deployment: string | undefined, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const { rpc } = core;
      const rows: Granted[] = [];
      const asked =
        deployment === undefined
          ? await listDeployments(core)
          : [(await rpc.core.deploymentsGet({ id: deployment }).orThrow()).deployment];
      for (const { id, name } of asked) {
        const { grants } = await rpc.core.grantsGet({ deployment: id }).orThrow();
        if (deployment !== undefined || grants.rpc.length > 0) rows.push({ ...grants, name });
      }
      context.terminal.rows(columns, rows, "Nothing was granted to anybody.");
    }),
  );
}

const columns: Column<Granted>[] = [
  { heading: "DEPLOYMENT", cell: ({ name }) => name },
  { heading: "REVISION", cell: ({ revision }) => String(revision) },
  {
    heading: "MAY CALL",
    cell: ({ rpc }) => (rpc.length === 0 ? "nothing" : rpc.includes("*") ? "everything" : rpc.join(", ")),
  },
];
