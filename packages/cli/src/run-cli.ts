import { CommanderError } from "commander";
import { EXIT } from "./exit-code.ts";
import { CliFailure, type FailureReport } from "./failure.ts";
import type { Terminal } from "./output/terminal.ts";
import { visible } from "./output/visible.ts";
import { buildProgram } from "./program.ts";
import type { Surroundings } from "./surroundings.ts";

/** Runs one command line to its end; the result is the exit code. Never rejects. */
export async function runCli(
  args: readonly string[],
  surroundings: Surroundings,
  version: string,
): Promise<number> {
  let code: number = EXIT.done;
  const exit = (wanted: number) => {
    code = wanted;
  };
  const { terminal } = surroundings;
  try {
    const program = buildProgram({ ...surroundings, exit }, version);
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return commanderCode(thrown);
    if (surroundings.interruptedBy() !== undefined) return EXIT.interrupted;
    const report =
      thrown instanceof CliFailure ? thrown.report : (await import("./report.ts")).reportOf(thrown);
    showFailure(terminal, report, surroundings.env["TRELLIS_DEBUG"] === "1" ? thrown : undefined);
    return report.exitCode;
  }
}

/** Commander has said already what is wrong, or shown the help that was asked for. */
function commanderCode({ exitCode, code }: CommanderError): number {
  // A noun without a verb: the help was shown because something is missing.
  if (code === "commander.help") return EXIT.usage;
  return exitCode === 0 ? EXIT.done : EXIT.usage;
}

function showFailure(terminal: Terminal, report: FailureReport, debug: unknown): void {
  const { type, message, hint, data, stack } = report;
  if (terminal.json) {
    terminal.note(JSON.stringify({ error: { type, message, hint, data } }));
    return;
  }
  const { red, dim, bold } = terminal.noteColours;
  const name = type === undefined ? "" : `${bold(type)}: `;
  terminal.note(`${red("✗")} ${name}${visible(message)}`);
  if (data !== undefined) terminal.note(`  ${JSON.stringify(data)}`);
  if (hint !== undefined) terminal.note(`  ${dim(visible(hint))}`);
  if (debug instanceof Error) terminal.note(dim(debug.stack ?? ""));
  else if (stack !== undefined) terminal.note(dim(stack));
}
