import { Command } from "commander";
import { type CommandContext, onPlatform, withCore } from "../../context.ts";
import { sparkline } from "../../output/sparkline.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { type FilterOptions, filterOf } from "./job-options.ts";

type Metrics = Awaited<ReturnType<ReturnType<CoreClient["rpc"]["jobs"]["metrics"]>["orThrow"]>>;
type Spread = Metrics["waitMs"];

/** Parts of the span: as many as fit into a line. */
const buckets = 60;

export function jobsMetrics(context: CommandContext): Command {
  const command = new Command("metrics")
    .description("show how jobs came and went, and how long they waited and ran")
    .option("--deployment <name>", "of this deployment only, by name or id")
    .option("--queue <queue>", "of this queue only")
    .option("--since <when>", "a span back (2h, 30m, 7d) or an instant", "1h");
  return onPlatform(command).action((options: FilterOptions) =>
    withCore(context, options, async (core) => {
      const metrics = await core.rpc.jobs.metrics({ ...filterOf(options, Date.now()), buckets }).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(metrics);
      for (const line of linesOf(metrics)) terminal.line(line);
    }),
  );
}

function linesOf({ since, until, bucketMs, buckets: parts, waitMs, runMs }: Metrics): string[] {
  const created = parts.map((part) => part.created);
  const states = [...new Set(parts.flatMap(({ ended }) => Object.keys(ended)))].sort();
  const rows: [string, number[]][] = [
    ["created", created],
    ...states.map((state): [string, number[]] => [state, parts.map(({ ended }) => ended[state] ?? 0)]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    `${new Date(since).toISOString()} to ${new Date(until).toISOString()}, ${Math.round(bucketMs / 1_000)} s a step`,
    ...rows.map(([name, counts]) => {
      const total = counts.reduce((sum, count) => sum + count, 0);
      return `${name.padEnd(width)}  ${sparkline(counts)}  ${total}`;
    }),
    `${"waited".padEnd(width)}  ${spreadText(waitMs)}`,
    `${"ran".padEnd(width)}  ${spreadText(runMs)}`,
  ];
}

function spreadText({ count, p50 = 0, p95 = 0, p99 = 0 }: Spread): string {
  if (count === 0) return "nothing ended";
  return `p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms (newest ${count})`;
}
