import { resolve } from "node:path";
import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { type DataOptions, dataOption } from "../server/data-option.ts";

interface Options extends DataOptions {
  readonly origin?: readonly string[];
}

export function natsConfig(context: CommandContext): Command {
  const command = new Command("config")
    .description("print the configuration that your own nats-server needs for Trellis")
    .option("--origin <origin...>", "web origins whose pages may connect, for the websocket block")
    .addHelpText(
      "after",
      `
It holds public keys only. Put it into a file and include it, or paste it.

Examples:
  trellis nats config --data /var/lib/trellis > trellis.nats.conf
  nats-server -c nats-server.conf      # which says: include ./trellis.nats.conf`,
    );
  return dataOption(command).action(async (options: Options) => {
    const { externalNatsConfig, isInitialised } = await import("@trellis/control-plane");
    const dataDir = resolve(context.folder, options.data);
    if (!isInitialised(dataDir)) throw notInitialised(options.data);
    const { origin: websocketOrigins } = options;
    const text = externalNatsConfig({
      dataDir,
      ...(websocketOrigins === undefined ? {} : { websocketOrigins }),
    });
    if (context.terminal.json) context.terminal.value({ config: text });
    else context.terminal.line(text.trimEnd());
  });
}

/** A data folder without keys: nothing can be done with it yet. */
export function notInitialised(data: string): CliFailure {
  return new CliFailure(`There are no keys in ${data}.`, {
    exitCode: EXIT.usage,
    hint: `Make them first: trellis server init --data ${data}`,
  });
}
