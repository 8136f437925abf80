import { Command } from "commander";
import { type CommandContext, onPlatform, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { type Column, formatAge } from "../../output/table.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { type FilterOptions, filterOf, withFilter } from "./job-options.ts";

interface Options extends FilterOptions {
  readonly limit: string;
}

type JobRow = Awaited<ReturnType<ReturnType<CoreClient["rpc"]["jobs"]["query"]>["orThrow"]>>["jobs"][number];

const pageLimit = 500;

export function jobsList(context: CommandContext): Command {
  const command = new Command("list")
    .alias("ls")
    .description("list jobs, the newest first")
    .option("--limit <count>", "at the most so many", "50")
    .addHelpText(
      "after",
      "\nExamples:\n  trellis jobs list --state dead,failed --since 2h\n  trellis jobs list --deployment acme.press --queue print --json",
    );
  return onPlatform(withFilter(command)).action((options: Options) =>
    withCore(context, options, async (core) => {
      const limit = countOf(options.limit);
      const now = Date.now();
      const filter = filterOf(options, now);
      const rows: JobRow[] = [];
      for (let cursor: string | undefined; rows.length < limit; ) {
        const size = Math.min(pageLimit, limit - rows.length);
        const page = await core.rpc.jobs
          .query({ ...filter, limit: size, ...(cursor === undefined ? {} : { cursor }) })
          .orThrow();
        rows.push(...page.jobs);
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      context.terminal.rows(columns(now), rows, "No job matches.");
    }),
  );
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new CliFailure(`--limit ${text} is not a positive whole number.`, { exitCode: EXIT.usage });
}

function columns(now: number): Column<JobRow>[] {
  return [
    { heading: "QUEUE", cell: ({ service, queue }) => `${service}/${queue}` },
    { heading: "ID", cell: ({ id }) => id },
    { heading: "STATE", cell: ({ state }) => state },
    {
      heading: "TRIES",
      cell: ({ tries, maxTries }) => (maxTries === undefined ? `${tries}` : `${tries}/${maxTries}`),
    },
    { heading: "MADE", cell: ({ createdAt }) => `${formatAge(now - createdAt)} ago` },
    { heading: "ERROR", cell: ({ error }) => error ?? "" },
  ];
}
