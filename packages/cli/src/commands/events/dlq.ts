import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { allPages } from "../../platform/pages.ts";

interface Options extends PlatformOptions {
  readonly all?: boolean;
}

type LetterRow = Awaited<
  ReturnType<ReturnType<CoreClient["rpc"]["events"]["deadLettersList"]>["orThrow"]>
>["letters"][number];

const pageLimit = 100;

/** `trellis events dlq`: the events that a consumer could not handle. */
export function eventsDlq(context: CommandContext): Command {
  return new Command("dlq")
    .description("dead letters: events that a consumer could not handle")
    .addCommand(dlqLs(context))
    .addCommand(dlqShow(context))
    .addCommand(dlqChange(context, "replay"))
    .addCommand(dlqChange(context, "discard"));
}

function dlqLs(context: CommandContext): Command {
  const command = new Command("ls")
    .alias("list")
    .description("list dead letters, the oldest first")
    .argument("<deployment/consumer>", "the consumer");
  return onPlatform(command).action((place: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const where = consumerOf(place);
      const rows = await allPages(async (at) => {
        const { letters, ...next } = await core.rpc.events.deadLettersList({ ...where, ...at }).orThrow();
        return { rows: letters, ...next };
      });
      context.terminal.rows(columns(Date.now()), rows, `${place} has no dead letters.`);
    }),
  );
}

function dlqShow(context: CommandContext): Command {
  const command = new Command("show")
    .description("show a dead letter with its payload")
    .argument("<deployment/consumer>", "the consumer")
    .argument("<number>", "of the letter, as `ls` shows it");
  return onPlatform(command).action((place: string, number: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const where = { ...consumerOf(place), sequence: sequenceOf(number) };
      const found = await core.rpc.events.deadLettersGet(where).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(found);
      const { error, storedAt, at, ...rest } = found.letter;
      for (const [name, value] of Object.entries(rest))
        terminal.line(`${terminal.colours.bold(name.padEnd(10))} ${value}`);
      terminal.line(`${terminal.colours.bold("published ")} ${new Date(storedAt).toISOString()}`);
      terminal.line(`${terminal.colours.bold("given up  ")} ${new Date(at).toISOString()}`);
      terminal.line(`${terminal.colours.bold("error     ")} ${error.type}: ${error.message}`);
      terminal.line();
      terminal.line(found.payload ?? "(the payload is no longer kept)");
    }),
  );
}

const does = {
  replay: { text: "give dead letters to their consumer again", done: "replayed" },
  discard: { text: "throw dead letters away", done: "discarded" },
} as const;

function dlqChange(context: CommandContext, verb: keyof typeof does): Command {
  const { text, done } = does[verb];
  const command = new Command(verb)
    .description(`${text}: one, or all of a consumer`)
    .argument("<deployment/consumer>", "the consumer")
    .argument("[number]", "of the letter, as `ls` shows it")
    .option("--all", "all dead letters of the consumer")
    .addHelpText(
      "after",
      `\nExamples:\n  trellis events dlq ${verb} acme.billing/orders 17\n  trellis events dlq ${verb} acme.billing/orders --all`,
    );
  return onPlatform(command).action((place: string, number: string | undefined, options: Options) => {
    const where = consumerOf(place);
    if ((number === undefined) === (options.all !== true)) {
      throw new CliFailure("Which dead letters?", {
        exitCode: EXIT.usage,
        hint: `Name one by its number (\`trellis events dlq ls ${place}\`), or say --all.`,
      });
    }
    return withCore(context, options, async (core) => {
      const { events } = core.rpc;
      const ask = verb === "replay" ? events.deadLettersReplay : events.deadLettersDiscard;
      const total = number === undefined ? await countOf(core, where) : 1;
      let changed = 0;
      for (let cursor: string | undefined; ; ) {
        const one = number === undefined ? { limit: pageLimit } : { sequence: sequenceOf(number) };
        const page = await ask({ ...where, ...one, ...(cursor === undefined ? {} : { cursor }) }).orThrow();
        changed += page.changed;
        context.terminal.progress(changed, total);
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      if (context.terminal.json) return context.terminal.value({ changed });
      context.terminal.line(`${changed} ${done}`);
    });
  });
}

async function countOf(core: CoreClient, where: { deployment: string; consumer: string }): Promise<number> {
  const { consumers } = await core.rpc.events.consumersList({ deployment: where.deployment }).orThrow();
  return consumers.find(({ consumer }) => consumer === where.consumer)?.deadLetters ?? 0;
}

function columns(now: number): Column<LetterRow>[] {
  return [
    { heading: "NUMBER", cell: ({ sequence }) => String(sequence) },
    { heading: "EVENT", cell: ({ event }) => event },
    { heading: "REASON", cell: ({ reason }) => reason },
    { heading: "ATTEMPTS", cell: ({ attempts }) => String(attempts) },
    { heading: "GIVEN UP", cell: ({ at }) => `${formatAge(now - at)} ago` },
    { heading: "ERROR", cell: ({ error }) => `${error.type}: ${error.message}` },
  ];
}

function sequenceOf(text: string): number {
  const sequence = Number(text);
  if (Number.isSafeInteger(sequence) && sequence > 0) return sequence;
  throw new CliFailure(`"${text}" is not the number of a dead letter.`, { exitCode: EXIT.usage });
}

/** A consumer of a deployment, written `acme.billing/orders`. */
function consumerOf(text: string): { deployment: string; consumer: string } {
  const [deployment = "", consumer = "", ...more] = text.split("/");
  if (deployment !== "" && consumer !== "" && more.length === 0) return { deployment, consumer };
  throw new CliFailure(`"${text}" does not name a consumer.`, {
    exitCode: EXIT.usage,
    hint: "Write <deployment>/<consumer>, for instance acme.billing/orders. `trellis events consumers` lists them.",
  });
}
