import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { bytesText } from "../../output/bytes.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { allPages } from "../../platform/pages.ts";
import { listResources, onResource } from "../../platform/resource-place.ts";

interface Options extends PlatformOptions {
  readonly prefix?: string;
}

type ObjectRow = Awaited<ReturnType<typeof objectsOf>>[number];

export function storeLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("list the objects of a store, or the stores")
    .argument("[deployment/alias]", "the store; default: list the stores")
    .option("--prefix <text>", "only keys that begin so");
  return onPlatform(command).action((text: string | undefined, options: Options) =>
    withCore(context, options, async (core) => {
      const { terminal } = context;
      if (text === undefined) {
        const rows = (await listResources(core)).filter(({ kind }) => kind === "store");
        return terminal.rows(
          [
            { heading: "STORE", cell: ({ service, alias }) => `${service}/${alias}` },
            { heading: "STATE", cell: ({ state }) => state },
          ],
          rows,
          "There are no stores.",
        );
      }
      const { prefix } = options;
      const rows = await onResource(core, { kind: "store", text }, (place) =>
        objectsOf(core, { ...place, ...(prefix === undefined ? {} : { prefix }) }),
      );
      terminal.rows(columns(Date.now()), rows, `${text} has no such objects.`);
    }),
  );
}

/** The objects of a store, by key. */
export function objectsOf(core: CoreClient, where: { deployment: string; alias: string; prefix?: string }) {
  return allPages(async (at) => {
    const page = await core.rpc.resources.storeList({ ...where, ...at, limit: 500 }).orThrow();
    const { objects: rows, cursor } = page;
    return { rows, ...(cursor === undefined ? {} : { cursor }) };
  });
}

function columns(now: number): Column<ObjectRow>[] {
  return [
    { heading: "KEY", cell: ({ key }) => key },
    { heading: "SIZE", cell: ({ size }) => bytesText(size) },
    { heading: "TYPE", cell: ({ contentType }) => contentType ?? "" },
    { heading: "UPDATED", cell: ({ updatedAt }) => `${formatAge(now - updatedAt)} ago` },
  ];
}
