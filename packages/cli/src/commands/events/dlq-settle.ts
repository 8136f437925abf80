import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { listLetters } from "./dlq-ls.ts";
import { sequenceOf } from "./sequence.ts";

interface Options extends PlatformOptions {
  readonly all?: boolean;
  readonly reason?: string;
}

type Verb = "replay" | "discard";

const words = { replay: "replayed", discard: "discarded" } as const;
/** Letters of one request. */
const atOnce = 100;

export function eventsDlqReplay(context: CommandContext): Command {
  return settleCommand(context, "replay", "give events to their consumer again, and to no other");
}

export function eventsDlqDiscard(context: CommandContext): Command {
  return settleCommand(context, "discard", "throw dead letters away");
}

function settleCommand(context: CommandContext, verb: Verb, description: string): Command {
  const command = new Command(verb)
    .description(description)
    .argument("<deployment>", "name or id of the deployment")
    .argument("<consumer>", "the consumer, as the contract calls it")
    .argument("[sequence...]", "numbers of letters, from `trellis events dlq ls`")
    .option("--all", "all letters of the consumer that are there now")
    .option("--reason <reason>", "with --all: only those with this reason")
    .addHelpText(
      "after",
      `\nExamples:\n  trellis events dlq ${verb} acme.billing orders 4711 4712\n  trellis events dlq ${verb} acme.billing orders --all --reason exhausted`,
    );
  return onPlatform(command).action(
    (...[deployment, consumer, given, options]: [string, string, string[], Options]) => {
      const named = given.map(sequenceOf);
      if (named.length > 0 === (options.all === true)) {
        const hint = `Write \`trellis events dlq ${verb} ${deployment} ${consumer} <sequence>\` or add --all.`;
        throw new CliFailure("Which dead letters? Name their numbers, or say --all.", {
          exitCode: EXIT.usage,
          hint,
        });
      }
      return withCore(context, options, async (core) => {
        const where = { deployment, consumer };
        const sequences = options.all === true ? await sequencesOf(core, where, options.reason) : named;
        await settle(context, core, { verb, where, sequences });
      });
    },
  );
}

async function sequencesOf(
  core: CoreClient,
  where: { deployment: string; consumer: string },
  reason: string | undefined,
): Promise<number[]> {
  const letters = await listLetters(core, { ...where, ...(reason === undefined ? {} : { reason }) });
  return letters.map(({ sequence }) => sequence);
}

async function settle(
  context: CommandContext,
  core: CoreClient,
  input: { verb: Verb; where: { deployment: string; consumer: string }; sequences: readonly number[] },
): Promise<void> {
  const { verb, where, sequences } = input;
  const { terminal } = context;
  const signal = context.holdSignals();
  const { deadLettersReplay, deadLettersDiscard } = core.rpc.events;
  const ask = verb === "replay" ? deadLettersReplay : deadLettersDiscard;
  const done: number[] = [];
  const missing: number[] = [];
  for (let from = 0; from < sequences.length && !signal.aborted; from += atOnce) {
    const some = sequences.slice(from, from + atOnce);
    const settled = await ask({ ...where, sequences: some }).orThrow();
    done.push(...settled.done);
    missing.push(...settled.missing);
    if (sequences.length > atOnce) terminal.note(`${done.length + missing.length} of ${sequences.length}`);
  }
  if (terminal.json) terminal.value({ done, missing });
  else terminal.line(`${done.length} dead letters ${words[verb]}`);
  if (missing.length === 0) return;
  terminal.note(`Not there, or its event is not kept any more: ${missing.join(", ")}`);
  context.exit(EXIT.notFound);
}
