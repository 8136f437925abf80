import { Command } from "commander";
import { callCommand } from "./commands/call.ts";
import { devCommand } from "./commands/dev.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { eventsCommand } from "./commands/events/events.ts";
import { natsCommand } from "./commands/nats/nats.ts";
import { participantsCommand } from "./commands/participants/participants.ts";
import { serverCommand } from "./commands/server/server.ts";
import { servicesCommand } from "./commands/services.ts";
import { svcCommand } from "./commands/svc/svc.ts";
import type { CommandContext } from "./context.ts";
import { exitCodeHelp } from "./exit-code.ts";

/** The whole command: every noun and verb, with the settings that hold for all of them. */
export function buildProgram(context: CommandContext, version: string): Command {
  const program = new Command("trellis")
    .description("Run, deploy and call services on Trellis")
    .version(version, "-v, --version")
    .addCommand(devCommand(context))
    .addCommand(servicesCommand(context))
    .addCommand(callCommand(context))
    .addCommand(eventsCommand(context))
    .addCommand(doctorCommand(context))
    .addCommand(participantsCommand(context))
    .addCommand(svcCommand(context))
    .addCommand(serverCommand(context))
    .addCommand(natsCommand(context))
    .addHelpText(
      "after",
      `
Begin with \`trellis dev\` in your project, and \`trellis services\` in another terminal.
${exitCodeHelp}`,
    );
  settle(program, context);
  return program;
}

/** Commander keeps these settings per command. */
function settle(command: Command, context: CommandContext): void {
  const { terminal } = context;
  command
    .option("--json", "JSON on standard output, and nothing else there")
    // Else a noun would take the options of its verbs.
    .enablePositionalOptions()
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => terminal.line(text.trimEnd()),
      writeErr: (text) => terminal.note(text.trimEnd()),
      outputError: (text, write) => write(terminal.noteColours.red(text)),
    });
  for (const child of command.commands) settle(child, context);
}
