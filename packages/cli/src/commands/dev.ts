import { Command, InvalidArgumentError } from "commander";
import type { CommandContext } from "../context.ts";
import type { DevOptions } from "../dev/run-dev.ts";

type Options = Omit<DevOptions, "entry" | "args">;

export function devCommand(context: CommandContext): Command {
  return new Command("dev")
    .description("run a platform for this project, with a broker of its own")
    .argument("[entry]", "a .ts or .js file to run on it")
    .argument("[args...]", "arguments of the entry, after --")
    .option("--watch", "start the entry again when a source file changes")
    .option("--port <port>", "port for requests; default: that of the last time, or a free one", port)
    .option("--fresh", "forget what was installed and stored before")
    .addHelpText(
      "after",
      `
Keeps its data in .trellis/ of this folder. Programs that connect from here or below find it by themselves;
each one is installed and provisioned as it comes. For one developer, on this machine: never a server.

Examples:
  trellis dev
  trellis dev services/orders.ts --watch`,
    )
    .action((entry: string | undefined, args: string[], options: Options) =>
      run(context, { entry, args, ...options }),
    );
}

async function run(context: CommandContext, options: DevOptions): Promise<void> {
  const { runDev } = await import("../dev/run-dev.ts");
  await runDev(context, options);
}

function port(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0 && value <= 65_535) return value;
  throw new InvalidArgumentError("A port from 0 to 65535 is needed.");
}
