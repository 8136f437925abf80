import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";

type WorkerRow = Awaited<
  ReturnType<ReturnType<CoreClient["rpc"]["jobs"]["workers"]>["orThrow"]>
>["workers"][number];

export function jobsWorkers(context: CommandContext): Command {
  const command = new Command("workers")
    .description("list the processes that do jobs")
    .argument("[deployment]", "name or id of a deployment")
    .option("--queue <queue>", "of this queue only");
  return onPlatform(command).action(
    (deployment: string | undefined, options: PlatformOptions & { queue?: string }) =>
      withCore(context, options, async (core) => {
        const { queue } = options;
        const { workers } = await core.rpc.jobs
          .workers({
            ...(deployment === undefined ? {} : { deployment }),
            ...(queue === undefined ? {} : { queue }),
          })
          .orThrow();
        context.terminal.rows(
          columns(Date.now()),
          workers,
          "No worker has told of itself. Workers tell at their start and every 30 s.",
        );
      }),
  );
}

function columns(now: number): Column<WorkerRow>[] {
  return [
    { heading: "QUEUE", cell: ({ service, queue }) => `${service}/${queue}` },
    { heading: "INSTANCE", cell: ({ instance }) => instance },
    { heading: "CONNECTION", cell: ({ connection }) => connection },
    {
      heading: "STATUS",
      cell: ({ status, reason }) => (reason === undefined ? status : `${status}: ${reason}`),
    },
    { heading: "RUNNING", cell: ({ running, concurrency }) => `${running}/${concurrency}` },
    { heading: "UP", cell: ({ uptimeMs }) => formatAge(uptimeMs) },
    { heading: "SEEN", cell: ({ seenAt }) => `${formatAge(now - seenAt)} ago` },
  ];
}
