import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { bucketArgument, onResource } from "../../platform/resource-place.ts";

interface Options extends PlatformOptions {
  readonly prefix?: string;
  readonly changesOnly?: boolean;
}

export function kvWatch(context: CommandContext): Command {
  const command = new Command("watch")
    .description("show what is in a bucket, then every change, until Ctrl-C")
    .argument(...bucketArgument)
    .argument("[key]", "only this key")
    .option("--prefix <text>", "only keys that begin so")
    .option("--changes-only", "leave out what is there already")
    .addHelpText("after", "\nOne line for each change; with --json one JSON value a line, `ready` between.");
  return onPlatform(command).action((text: string, key: string | undefined, options: Options) =>
    withCore(context, options, (core) =>
      onResource(core, { kind: "kv", text }, async (place) => {
        const { terminal } = context;
        const signal = context.holdSignals();
        const { prefix } = options;
        const range = { ...(key === undefined ? {} : { key }), ...(prefix === undefined ? {} : { prefix }) };
        let ready = options.changesOnly !== true;
        try {
          for await (const item of core.feed.resources.kvWatch({ ...place, ...range }, { signal })) {
            if (item.kind === "ready") ready = true;
            else if (!ready) continue;
            if (terminal.json) terminal.line(JSON.stringify(item));
            else if (item.kind !== "ready") terminal.line(lineOf(item));
          }
        } catch (error) {
          if (!signal.aborted) throw error;
        }
      }),
    ),
  );
}

type Change =
  | { readonly kind: "value"; readonly key: string; readonly revision: number; readonly value: unknown }
  | { readonly kind: "deleted"; readonly key: string; readonly revision: number }
  | { readonly kind: "invalid"; readonly key: string; readonly revision: number; readonly problem: string };

function lineOf(change: Change): string {
  const head = `${change.revision}\t${change.key}\t`;
  if (change.kind === "value") return head + JSON.stringify(change.value);
  return head + (change.kind === "deleted" ? "(deleted)" : `(${change.problem})`);
}
