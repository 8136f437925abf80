import { Command, InvalidArgumentError } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { visible } from "../../output/visible.ts";
import type { CoreClient } from "../../platform/connect-core.ts";

interface Options extends PlatformOptions {
  readonly since?: number;
  readonly limit?: number;
}

type RecentEvent = Awaited<ReturnType<typeof recent>>["events"][number];

const pollMs = 500;
const pageSize = 200;

export function eventsTail(context: CommandContext): Command {
  const command = new Command("tail")
    .description("show events as they are published")
    .argument("[event...]", "names of events, for example Order.Placed; default: all")
    .option("--since <age>", "begin with what was published so long ago: 30s, 10m, 2h, 1d", age)
    .option("--limit <count>", "end after so many events", positive)
    .addHelpText(
      "after",
      `
Without --since it begins with what comes from now on. Ctrl-C ends it.
Events are shown as the stream has them; their signatures are for their consumers to verify.

Examples:
  trellis events tail
  trellis events tail Order.Placed --since 1h --limit 20
  trellis events tail --json | jq .payload`,
    );
  return onPlatform(command).action((names: string[], options: Options) =>
    withCore(context, options, async (core) => {
      const signal = context.holdSignals();
      const events = names.length === 0 ? {} : { events: names };
      let left = options.limit ?? Number.POSITIVE_INFINITY;
      let at: { since: number } | { after: number };
      if (options.since !== undefined) at = { since: Date.now() - options.since };
      else at = { after: (await recent(core, { limit: 1 })).sequence };
      while (left > 0 && !signal.aborted) {
        const page = await recent(core, { ...events, ...at, limit: Math.min(left, pageSize) });
        for (const event of page.events) show(context, event);
        left -= page.events.length;
        at = { after: page.sequence };
        if (page.events.length === 0) await pause(signal);
      }
    }),
  );
}

function recent(core: CoreClient, input: Parameters<CoreClient["rpc"]["events"]["recent"]>[0]) {
  return core.rpc.events.recent(input).orThrow();
}

/** One line each, with `--json` too: a stream has no end that an array could have. */
function show({ terminal }: CommandContext, event: RecentEvent): void {
  if (terminal.json) return terminal.line(JSON.stringify({ ...event, payload: parsed(event.payload) }));
  const { colours } = terminal;
  const time = colours.dim(new Date(event.storedAt).toISOString());
  const params = event.params.length === 0 ? "" : ` ${event.params.join(" ")}`;
  const payload = event.payload ?? `(${event.bytes} bytes)`;
  terminal.line(`${time} ${colours.bold(visible(event.event + params))} ${visible(payload)}`);
}

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, pollMs);
    signal.addEventListener("abort", end);
  });
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function age(text: string): number {
  const [, count = "", unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit] ?? Number.NaN);
  if (Number.isSafeInteger(ms) && ms > 0) return ms;
  throw new InvalidArgumentError("An age is needed: 30s, 10m, 2h, 1d.");
}

function positive(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError("A whole number above zero is needed.");
}
