import { Command } from "commander";
import { type CommandContext, onPlatform, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { type FilterOptions, filterOf, type JobFilter, queueOf, withFilter } from "./job-options.ts";

interface Options extends FilterOptions {
  readonly all?: boolean;
}

interface Verb {
  readonly name: "retry" | "cancel" | "dismiss";
  readonly does: string;
  readonly done: string;
  /** Where it makes sense, when nobody says which states. */
  readonly states: NonNullable<JobFilter["states"]>;
}

const verbs: readonly Verb[] = [
  { name: "retry", does: "run dead or failed jobs again", done: "retried", states: ["dead", "failed"] },
  {
    name: "cancel",
    does: "cancel jobs that are not over",
    done: "cancelled",
    states: ["pending", "active", "retry"],
  },
  {
    name: "dismiss",
    does: "put dead or failed jobs out of the way",
    done: "dismissed",
    states: ["dead", "failed"],
  },
];

const pageLimit = 250;

/** `retry`, `cancel` and `dismiss`: of one job, or of all that match. */
export function jobsChanges(context: CommandContext): Command[] {
  return verbs.map((verb) => {
    const command = new Command(verb.name)
      .description(`${verb.does}: one, or all that match`)
      .argument("[deployment/queue]", "the queue of one job")
      .argument("[id]", "its id")
      .option("--all", "every job that matches the options below")
      .addHelpText(
        "after",
        `\nExamples:\n  trellis jobs ${verb.name} acme.press/print 01J9ZK3Q6W\n  trellis jobs ${verb.name} --all --queue print --error "paper jam"`,
      );
    return onPlatform(withFilter(command)).action(
      (place: string | undefined, id: string | undefined, options: Options) => {
        if (place !== undefined && id !== undefined) return changeOne(context, verb, { place, id, options });
        if (options.all === true && place === undefined) return changeAll(context, verb, options);
        throw new CliFailure("Which jobs?", {
          exitCode: EXIT.usage,
          hint: `Name one (trellis jobs ${verb.name} <deployment/queue> <id>), or say --all.`,
        });
      },
    );
  });
}

function changeOne(
  context: CommandContext,
  verb: Verb,
  { place, id, options }: { place: string; id: string; options: Options },
): Promise<void> {
  return withCore(context, options, async (core) => {
    const answer = await core.rpc.jobs[verb.name]({ ...queueOf(place), id }).orThrow();
    const { terminal } = context;
    if (terminal.json) terminal.value(answer);
    else if (answer.changed === 1) terminal.line(`${id} is ${verb.done}`);
    if (answer.changed === 1) return;
    if (answer.reason === undefined) {
      if (!terminal.json) terminal.line(`${id} stays as it is: ${answer.state ?? "unchanged"}`);
      return;
    }
    const why = answer.reason === "key" ? "its key is taken" : `it is ${answer.state ?? "changed"}`;
    throw new CliFailure(`${id} was not ${verb.done}: ${why}.`, {
      exitCode: EXIT.failed,
      hint: `\`trellis jobs get ${place} ${id}\` shows it.`,
    });
  });
}

function changeAll(context: CommandContext, verb: Verb, options: Options): Promise<void> {
  return withCore(context, options, async (core) => {
    const { terminal } = context;
    const filter = { states: verb.states, ...filterOf(options, Date.now()) };
    const total = await countOf(core, filter);
    let changed = 0;
    let refused = 0;
    for (let cursor: string | undefined; ; ) {
      const page = await core.rpc.jobs[verb.name]({
        ...filter,
        limit: pageLimit,
        ...(cursor === undefined ? {} : { cursor }),
      }).orThrow();
      changed += page.changed;
      refused += page.refused;
      terminal.progress(changed + refused, total);
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    if (terminal.json) return terminal.value({ changed, refused });
    const rest = refused === 0 ? "" : `, ${refused} had changed meanwhile`;
    terminal.line(`${changed} ${verb.done}${rest}`);
  });
}

async function countOf(core: CoreClient, filter: JobFilter): Promise<number> {
  const { limit: _, cursor: __, ...which } = filter;
  const { states } = await core.rpc.jobs.summary(which).orThrow();
  return Object.values(states).reduce((sum, count) => sum + count, 0);
}
