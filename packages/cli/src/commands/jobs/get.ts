import { setTimeout as pause } from "node:timers/promises";
import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { queueOf } from "./job-options.ts";

type Got = Awaited<ReturnType<ReturnType<CoreClient["rpc"]["jobs"]["get"]>["orThrow"]>>;
type Entry = Got["events"][number];

const lookMs = 500;
const live: ReadonlySet<string> = new Set(["pending", "active", "retry"]);

export function jobsGet(context: CommandContext): Command {
  const command = new Command("get")
    .description("show a job and what happened to it")
    .argument("<deployment/queue>", "its queue")
    .argument("<id>", "its id")
    .addHelpText("after", "\nExamples:\n  trellis jobs get acme.press/print 01J9ZK3Q6W");
  return onPlatform(command).action((place: string, id: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const found = await core.rpc.jobs.get({ ...queueOf(place), id }).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(found);
      for (const [name, value] of Object.entries(found.job))
        terminal.line(`${terminal.colours.bold(name.padEnd(12))} ${text(value)}`);
      terminal.line();
      for (const entry of found.events) terminal.line(lineOf(entry));
    }),
  );
}

export function jobsWatch(context: CommandContext): Command {
  const command = new Command("watch")
    .description("follow a job until it is over")
    .argument("<deployment/queue>", "its queue")
    .argument("<id>", "its id");
  return onPlatform(command).action((place: string, id: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const { terminal } = context;
      const signal = context.holdSignals();
      const where = { ...queueOf(place), id };
      for (let shown = 0; !signal.aborted; ) {
        const { job, events } = await core.rpc.jobs.get(where).orThrow();
        for (const entry of events.slice(shown)) {
          if (terminal.json) terminal.value(entry);
          else terminal.line(lineOf(entry));
        }
        shown = events.length;
        if (!live.has(String(job["state"]))) return;
        await pause(lookMs, undefined, { signal }).catch(() => undefined);
      }
    }),
  );
}

function lineOf({ at, type, state, tries, error }: Entry): string {
  const tail = error === undefined ? "" : `  ${error}`;
  return `${new Date(at).toISOString()}  ${type.padEnd(10)} ${state.padEnd(10)} try ${tries}${tail}`;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
