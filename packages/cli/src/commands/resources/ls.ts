import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { bytesText } from "../../output/bytes.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { listResources, type ResourceRow } from "../../platform/resource-place.ts";

interface Options extends PlatformOptions {
  readonly kind?: string;
  readonly detached?: boolean;
}

type Got = Awaited<ReturnType<ReturnType<CoreClient["rpc"]["resources"]["get"]>["orThrow"]>>;
type Row = ResourceRow & Pick<Got, "usage" | "limits">;

export function resourcesLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("list resources with how much is in them")
    .argument("[deployment]", "name or id of one deployment")
    .option("--kind <kind>", "only kv, store, consumer, dead-letters or jobs")
    .option("--detached", "only those that no contract declares any more")
    .addHelpText(
      "after",
      "\nExamples:\n  trellis resources ls\n  trellis resources ls acme.field --kind store",
    );
  return onPlatform(command).action((deployment: string | undefined, options: Options) =>
    withCore(context, options, async (core) => {
      const wanted = (await listResources(core, deployment)).filter(
        ({ kind, state }) =>
          (options.kind === undefined || kind === options.kind) &&
          (options.detached !== true || state === "detached"),
      );
      const rows: Row[] = [];
      for (const row of wanted) {
        const { deployment: id, kind, alias } = row;
        const { usage, limits } = await core.rpc.resources.get({ deployment: id, kind, alias }).orThrow();
        rows.push({ ...row, limits, ...(usage === undefined ? {} : { usage }) });
      }
      context.terminal.rows(columns(Date.now()), rows, "There are no resources.");
    }),
  );
}

function columns(now: number): Column<Row>[] {
  return [
    { heading: "RESOURCE", cell: ({ service, alias }) => (alias === "" ? service : `${service}/${alias}`) },
    { heading: "KIND", cell: ({ kind }) => kind },
    { heading: "STATE", cell: ({ state }) => state },
    { heading: "MESSAGES", cell: ({ usage }) => (usage === undefined ? "" : String(usage.messages)) },
    { heading: "SIZE", cell: ({ usage }) => (usage === undefined ? "" : bytesText(usage.bytes)) },
    { heading: "CREATED", cell: ({ createdAt }) => `${formatAge(now - createdAt)} ago` },
  ];
}
