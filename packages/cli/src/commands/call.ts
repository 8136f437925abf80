import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
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
    const input = await readInput(context, json, options.file);
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

async function readInput(
  context: CommandContext,
  json: string | undefined,
  file: string | undefined,
): Promise<unknown> {
  if (json !== undefined && file !== undefined)
    throw new CliFailure("The input is given twice: as an argument and by --file.", { exitCode: EXIT.usage });
  if (file !== undefined) return parse(readText(resolve(context.folder, file)), file);
  if (json === undefined) return undefined;
  return json === "-" ? parse(await readAll(context.stdin), "standard input") : parse(json, "the argument");
}

async function parse(text: string, where: string): Promise<unknown> {
  const { parseStrictJson } = await import("@trellis/contract");
  if (text.trim() === "") return undefined;
  try {
    return parseStrictJson(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : "it does not parse";
    throw new CliFailure(`The input in ${where} is not JSON: ${why}`, {
      exitCode: EXIT.usage,
      hint: `Quote it for the shell: trellis call Greeter.Hello '{"name":"Ada"}'`,
      cause,
    });
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new CliFailure(`${path} cannot be read.`, { exitCode: EXIT.usage, cause });
  }
}

async function readAll(stdin: CommandContext["stdin"]): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString("utf8");
}
