import { type Duration, parseDuration } from "@trellis/contract";
import type { Command } from "commander";
import type { PlatformOptions } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import type { CoreClient } from "../../platform/connect-core.ts";

export type JobFilter = Parameters<CoreClient["rpc"]["jobs"]["query"]>[0];

/** Which jobs are meant. */
export interface FilterOptions extends PlatformOptions {
  readonly deployment?: string;
  readonly queue?: string;
  readonly state?: string;
  readonly since?: string;
  readonly error?: string;
}

const states = [
  "pending",
  "active",
  "retry",
  "completed",
  "failed",
  "cancelled",
  "expired",
  "skipped",
  "stale",
  "dead",
  "dismissed",
] as const;

type State = (typeof states)[number];

/** Adds the options that choose jobs. */
export function withFilter(command: Command): Command {
  return command
    .option("--deployment <name>", "of this deployment only, by name or id")
    .option("--queue <queue>", "of this queue only")
    .option("--state <states>", `in one of these states, with commas between: ${states.join(", ")}`)
    .option("--since <when>", "made since: a span back (2h, 30m, 7d) or an instant (2026-01-31T08:00:00Z)")
    .option("--error <text>", "whose last error contains this");
}

/** What the API is asked for. Says what is wrong with an option. */
export function filterOf(options: FilterOptions, now: number): JobFilter {
  const { deployment, queue, error } = options;
  return {
    ...(deployment === undefined ? {} : { deployment }),
    ...(queue === undefined ? {} : { queue }),
    ...(error === undefined ? {} : { error }),
    ...(options.state === undefined ? {} : { states: options.state.split(",").map(stateOf) }),
    ...(options.since === undefined ? {} : { since: instantOf(options.since, now) }),
  };
}

function stateOf(text: string): State {
  const state = states.find((known) => known === text.trim());
  if (state !== undefined) return state;
  throw new CliFailure(`"${text}" is not a state of a job.`, {
    exitCode: EXIT.usage,
    hint: `States are ${states.join(", ")}.`,
  });
}

function instantOf(text: string, now: number): number {
  const instant = Date.parse(text);
  if (/^\d{4}-/.test(text) && !Number.isNaN(instant)) return instant;
  try {
    return now - parseDuration(text as Duration, "--since");
  } catch {
    throw new CliFailure(`"${text}" is neither a span nor an instant.`, {
      exitCode: EXIT.usage,
      hint: "Write --since 2h, or --since 2026-01-31T08:00:00Z.",
    });
  }
}

/** A queue of a deployment, written `acme.press/print`. */
export function queueOf(text: string): { deployment: string; queue: string } {
  const [deployment = "", queue = "", ...more] = text.split("/");
  if (deployment !== "" && queue !== "" && more.length === 0) return { deployment, queue };
  throw new CliFailure(`"${text}" does not name a queue.`, {
    exitCode: EXIT.usage,
    hint: "Write <deployment>/<queue>, for instance acme.press/print. `trellis jobs queues` lists them.",
  });
}
