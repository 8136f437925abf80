import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { queueOf } from "./job-options.ts";

type QueueRow = Awaited<
  ReturnType<ReturnType<CoreClient["rpc"]["jobs"]["queues"]>["orThrow"]>
>["queues"][number];

export function jobsQueues(context: CommandContext): Command {
  const command = new Command("queues")
    .description("list queues with their depth")
    .argument("[deployment]", "name or id of a deployment");
  return onPlatform(command).action((deployment: string | undefined, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const { queues } = await core.rpc.jobs.queues(deployment === undefined ? {} : { deployment }).orThrow();
      context.terminal.rows(columns(Date.now()), queues, "There are no queues.");
    }),
  );
}

export function jobsPause(context: CommandContext): Command {
  return switching(context, {
    name: "pause",
    does: "give out no more jobs of a queue; those that run come to their end",
  });
}

export function jobsResume(context: CommandContext): Command {
  return switching(context, { name: "resume", does: "go on with a paused queue" });
}

function switching(
  context: CommandContext,
  { name, does }: { readonly name: "pause" | "resume"; readonly does: string },
): Command {
  const command = new Command(name).description(does).argument("<deployment/queue>", "the queue");
  return onPlatform(command).action((place: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const { jobs } = core.rpc;
      const where = queueOf(place);
      const asked = name === "pause" ? jobs.pauseQueue(where) : jobs.resumeQueue(where);
      const view = await asked.orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(view);
      terminal.line(`${view.service}/${view.queue} ${view.paused ? "is paused" : "goes on"}`);
    }),
  );
}

function columns(now: number): Column<QueueRow>[] {
  const count = (state: string) => (row: QueueRow) => String(row.states[state] ?? 0);
  return [
    { heading: "QUEUE", cell: ({ service, queue }) => `${service}/${queue}` },
    { heading: "STATE", cell: ({ paused }) => (paused ? "paused" : "running") },
    { heading: "WAITING", cell: ({ waiting }) => String(waiting) },
    { heading: "RUNNING", cell: ({ running }) => String(running) },
    { heading: "WORKERS", cell: ({ workers }) => String(workers) },
    {
      heading: "OLDEST",
      cell: ({ oldestPendingAt }) => (oldestPendingAt === undefined ? "" : formatAge(now - oldestPendingAt)),
    },
    { heading: "COMPLETED", cell: count("completed") },
    { heading: "FAILED", cell: count("failed") },
    { heading: "DEAD", cell: count("dead") },
  ];
}
