import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions } from "../context.ts";
import type { Finding } from "../doctor/checks.ts";
import { EXIT } from "../exit-code.ts";

export function doctorCommand(context: CommandContext): Command {
  const command = new Command("doctor").description("look for what is wrong, and say what to do about it");
  return onPlatform(command).action(async (options: PlatformOptions) => {
    const { terminal } = context;
    const { examine } = await import("../doctor/checks.ts");
    const findings: Finding[] = [];
    for await (const finding of examine(context, options)) {
      findings.push(finding);
      if (!terminal.json) show(context, finding);
    }
    if (terminal.json) terminal.value(findings);
    if (findings.some(({ state }) => state === "fail")) context.exit(EXIT.failed);
  });
}

function show({ terminal }: CommandContext, { check, state, detail, next }: Finding): void {
  const { green, yellow, red, dim } = terminal.colours;
  const mark = { ok: green("ok  "), warn: yellow("warn"), fail: red("fail") }[state];
  terminal.line(`${mark}  ${check.padEnd(13)}  ${detail}`);
  if (next !== undefined) terminal.line(dim(`${" ".repeat(21)}${next}`));
}
