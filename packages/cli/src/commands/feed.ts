import { Command, InvalidArgumentError } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../context.ts";
import { readInput } from "../input/read-input.ts";

interface Options extends PlatformOptions {
  readonly file?: string;
  readonly limit?: number;
}

export function feedCommand(context: CommandContext): Command {
  const command = new Command("feed")
    .description("show a feed of any service that is deployed, item by item, until Ctrl-C")
    .argument("<feed>", "its name, or API and name: Orders.Live, acme.orders@v1.Orders.Live")
    .argument("[json]", "the input; - reads it from standard input")
    .option("--file <file>", "read the input from a file")
    .option("--limit <n>", "end after so many items", count)
    .addHelpText(
      "after",
      `
Each item goes to standard output as JSON, with --json on a line of its own. Ctrl-C ends the feed, with exit code 0.

Examples:
  trellis feed Orders.Live '{"region":"eu"}'
  trellis feed Orders.Live --limit 1
  trellis feed Orders.Live --json | jq -r .id`,
    );
  return onPlatform(command).action(async (name: string, json: string | undefined, options: Options) => {
    const example = `trellis feed Orders.Live '{"region":"eu"}'`;
    const input = await readInput(context, { json, file: options.file, example });
    await withCore(context, options, async (core, platform) => {
      const { readFeed } = await import("../call/read-feed.ts");
      const { terminal } = context;
      let left = options.limit ?? Number.POSITIVE_INFINITY;
      const onItem = (item: unknown) => {
        if (terminal.json) terminal.line(JSON.stringify(item));
        else terminal.value(item);
        left -= 1;
        return left > 0;
      };
      await readFeed({ core, platform, name, input, signal: context.holdSignals(), onItem });
    });
  });
}

function count(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError("A number of items is needed.");
}
