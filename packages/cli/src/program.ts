import { Command } from "commander";
import { callCommand } from "./commands/call.ts";
import { devCommand } from "./commands/dev.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { eventsCommand } from "./commands/events/events.ts";
import { feedCommand } from "./commands/feed.ts";
import { grantsCommand } from "./commands/grants/grants.ts";
import { jobsCommand } from "./commands/jobs/jobs.ts";
import { kvCommand } from "./commands/kv/kv.ts";
import { natsCommand } from "./commands/nats/nats.ts";
import { participantsCommand } from "./commands/participants/participants.ts";
import { resourcesCommand } from "./commands/resources/resources.ts";
import { serverCommand } from "./commands/server/server.ts";
import { servicesCommand } from "./commands/services.ts";
import { storeCommand } from "./commands/store/store.ts";
import { svcCommand } from "./commands/svc/svc.ts";
import type { CommandContext } from "./context.ts";
import { exitCodeHelp } from "./exit-code.ts";
import type { Terminal } from "./output/terminal.ts";
import { visible } from "./output/visible.ts";

/** The whole command: every noun and verb, with the settings that hold for all of them. */
export function buildProgram(context: CommandContext, version: string): Command {
  const program = new Command("trellis")
    .description("Run, deploy and call services on Trellis")
    .version(version, "-v, --version")
    .addCommand(devCommand(context))
    .addCommand(servicesCommand(context))
    .addCommand(callCommand(context))
    .addCommand(feedCommand(context))
    .addCommand(doctorCommand(context))
    .addCommand(participantsCommand(context))
    .addCommand(svcCommand(context))
    .addCommand(eventsCommand(context))
    .addCommand(kvCommand(context))
    .addCommand(storeCommand(context))
    .addCommand(resourcesCommand(context))
    .addCommand(jobsCommand(context))
    .addCommand(grantsCommand(context))
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
      outputError: (text) => showMistake(text, command, terminal),
    });
  for (const child of command.commands) settle(child, context);
}

/** A wrong command line is told like every other failure: what is wrong, what to do, and with --json as JSON. */
function showMistake(text: string, command: Command, terminal: Terminal): void {
  const [first = "", ...more] = text.trim().split("\n");
  const message = first.replace(/^error: /, "");
  const hint = [...more, `\`${nameOf(command)} --help\` shows what it takes.`].join(" ");
  if (terminal.json) return terminal.note(JSON.stringify({ error: { message, hint } }));
  const { red, dim } = terminal.noteColours;
  terminal.note(`${red("✗")} ${visible(message)}`);
  terminal.note(`  ${dim(visible(hint))}`);
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}
