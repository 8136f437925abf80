import { Command, InvalidArgumentError } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../context.ts";
import { readInput } from "../input/read-input.ts";
import { showValue } from "../output/value.ts";

interface Options extends PlatformOptions {
  readonly file?: string;
  readonly timeout?: number;
  readonly table?: boolean;
}

export function callCommand(context: CommandContext): Command {
  const command = new Command("call")
    .description("call an RPC of any service that is deployed")
    .argument("<action>", "its name, or API and name: Greeter.Hello, hello.greeter@v1.Greeter.Hello")
    .argument("[json]", "the input; - reads it from standard input")
    .option("--file <file>", "read the input from a file")
    .option("--timeout <ms>", "give up after so many milliseconds; default: 30000", milliseconds)
    .option("--table", "show lists as tables")
    .addHelpText(
      "after",
      `
The answer goes to standard output as JSON. A declared error goes to standard error, with exit code 6.

Examples:
  trellis call Greeter.Hello '{"name":"Ada"}'
  trellis call hello.greeter@v1.Greeter.Hello --file ada.json
  echo '{"name":"Ada"}' | trellis call Greeter.Hello - --json | jq -r .text`,
    );
  return onPlatform(command).action(async (name: string, json: string | undefined, options: Options) => {
    const input = await readInput(context, { json, file: options.file });
    await withCore(context, options, async (core, platform) => {
      const { callOnce } = await import("../call/call-once.ts");
      const signal = context.holdSignals();
      const timeout = options.timeout === undefined ? {} : { timeout: options.timeout };
      const answer = await callOnce({ core, platform, name, input, options: { signal, ...timeout } });
      showValue(context.terminal, answer, options.table === true);
    });
  });
}

function milliseconds(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError("A number of milliseconds is needed.");
}
