import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { allPages } from "../../platform/pages.ts";
import { listResources, onResource } from "../../platform/resource-place.ts";

interface Options extends PlatformOptions {
  readonly prefix?: string;
}

export function kvLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("keys")
    .description("list the keys of a bucket, or the buckets")
    .argument("[deployment/alias]", "the bucket; default: list the buckets")
    .option("--prefix <text>", "only keys that begin so")
    .addHelpText("after", "\nExamples:\n  trellis kv ls\n  trellis kv ls acme.field/sites --prefix eu/");
  return onPlatform(command).action((text: string | undefined, options: Options) =>
    withCore(context, options, async (core) => {
      const { terminal } = context;
      if (text === undefined) {
        const rows = (await listResources(core)).filter(({ kind }) => kind === "kv");
        return terminal.rows(
          [
            { heading: "BUCKET", cell: ({ service, alias }) => `${service}/${alias}` },
            { heading: "STATE", cell: ({ state }) => state },
          ],
          rows,
          "There are no buckets.",
        );
      }
      const keys = await onResource(core, { kind: "kv", text }, (place) =>
        keysOf(core, { ...place, ...(options.prefix === undefined ? {} : { prefix: options.prefix }) }),
      );
      if (terminal.json) return terminal.value(keys);
      if (keys.length === 0) return terminal.note(`${text} has no such keys.`);
      for (const key of keys) terminal.line(key);
    }),
  );
}

/** The keys of a bucket, sorted. */
export function keysOf(core: CoreClient, where: { deployment: string; alias: string; prefix?: string }) {
  return allPages(async (at) => {
    const { keys: rows, ...next } = await core.rpc.resources
      .kvKeys({ ...where, ...at, limit: 500 })
      .orThrow();
    return { rows, ...next };
  });
}
