import { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { jobsChanges } from "./change.ts";
import { jobsGet, jobsWatch } from "./get.ts";
import { jobsList } from "./list.ts";
import { jobsMetrics } from "./metrics.ts";
import { jobsPause, jobsQueues, jobsResume } from "./queues.ts";
import { jobsWorkers } from "./workers.ts";

export function jobsCommand(context: CommandContext): Command {
  const command = new Command("jobs")
    .description("background jobs: what they do, and what to do about them")
    .addCommand(jobsList(context))
    .addCommand(jobsGet(context))
    .addCommand(jobsWatch(context));
  for (const change of jobsChanges(context)) command.addCommand(change);
  return command
    .addCommand(jobsQueues(context))
    .addCommand(jobsWorkers(context))
    .addCommand(jobsMetrics(context))
    .addCommand(jobsPause(context))
    .addCommand(jobsResume(context));
}
