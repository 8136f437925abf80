import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { CommandContext } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";

/** Where JSON may come from: an argument (`-`: standard input), or a file. Neither: nothing. */
export interface GivenInput {
  readonly json: string | undefined;
  readonly file: string | undefined;
  /** A command line that shows how it is quoted. */
  readonly example?: string;
}

/** Reads JSON that a person gave; refuses what could be meant in two ways. */
export async function readInput(context: CommandContext, given: GivenInput): Promise<unknown> {
  const { json, file, example = `trellis call Greeter.Hello '{"name":"Ada"}'` } = given;
  if (json !== undefined && file !== undefined)
    throw new CliFailure("The input is given twice: as an argument and by --file.", { exitCode: EXIT.usage });
  if (file !== undefined) return parse(readText(resolve(context.folder, file)), { where: file, example });
  if (json === undefined) return undefined;
  return json === "-"
    ? parse(await readAll(context.stdin), { where: "standard input", example })
    : parse(json, { where: "the argument", example });
}

async function parse(text: string, about: { where: string; example: string }): Promise<unknown> {
  const { parseStrictJson } = await import("@trellis/contract");
  if (text.trim() === "") return undefined;
  try {
    return parseStrictJson(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : "it does not parse";
    throw new CliFailure(`The input in ${about.where} is not JSON: ${why}`, {
      exitCode: EXIT.usage,
      hint: `Quote it for the shell: ${about.example}`,
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
