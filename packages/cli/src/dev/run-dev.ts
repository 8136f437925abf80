import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import type { ControlPlane } from "@trellis/control-plane";
import type { Logger } from "@trellis/runtime";
import { createLogger, nodePlatform, Scope } from "@trellis/runtime/node";
import { startPlane } from "../commands/server/start-plane.ts";
import type { CommandContext } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import { removeDevFile, writeDevFile } from "../platform/dev-file.ts";
import { ownMark } from "../platform/process-mark.ts";
import { DevFolder } from "./dev-folder.ts";
import { freeLastPorts, keepPorts } from "./last-ports.ts";
import { runEntry } from "./run-entry.ts";

export interface DevOptions {
  readonly entry: string | undefined;
  readonly args: readonly string[];
  readonly watch?: boolean;
  /** For requests; default: that of the last time, or a free one. */
  readonly port?: number;
  readonly fresh?: boolean;
}

/** Runs a platform, and an entry on it, until both are to end or have ended. */
export async function runDev(context: CommandContext, options: DevOptions): Promise<void> {
  const file = options.entry === undefined ? undefined : resolve(context.folder, options.entry);
  if (file !== undefined && !existsSync(file))
    throw new CliFailure(`There is no file ${options.entry}.`, {
      exitCode: EXIT.usage,
      hint: `Paths start at ${context.folder}. Without a file, \`trellis dev\` runs the platform alone.`,
    });
  if (file === undefined && options.watch === true)
    throw new CliFailure("--watch needs an entry to start again.", {
      exitCode: EXIT.usage,
      hint: "Name the file to run: `trellis dev service.ts --watch`.",
    });
  const stopping = context.holdSignals();
  const scope = new Scope({ name: "trellis dev" });
  try {
    const folder = new DevFolder(context.folder);
    scope.add("lock", folder.claim());
    if (options.fresh === true) folder.clear();
    const plane = await startDevPlane(context, folder, options.port);
    scope.add("platform", () => plane.stop());
    const mark = ownMark();
    const { url, rootFingerprint: root, devToken: token = "" } = plane;
    writeDevFile(folder.project, { version: 1, url, token, root, ...mark });
    scope.add("dev file", () => removeDevFile(folder.project, mark.pid));
    announce(context, plane, folder);
    const env = { ...context.env, TRELLIS_URL: url, TRELLIS_DEV_TOKEN: token, TRELLIS_ROOT: root };
    const signal = AbortSignal.any([stopping, endOf(context, plane)]);
    if (file === undefined) return await aborted(signal);
    const { watch = false, args } = options;
    const run = { file, args, folder: context.folder, env, watch, terminal: context.terminal, signal };
    context.exit(await runEntry(run));
  } finally {
    await scope.close();
  }
}

async function startDevPlane(
  context: CommandContext,
  folder: DevFolder,
  wanted: number | undefined,
): Promise<ControlPlane> {
  const devToken = folder.token();
  const last = await freeLastPorts(folder.data);
  const { terminal } = context;
  const say = (text: string) => {
    if (terminal.json) terminal.value({ event: "step", text });
    else terminal.line(`${terminal.colours.green("✓")} ${text}`);
  };
  const plane = await startPlane(context, {
    dataDir: folder.data,
    log: quiet(createLogger(nodePlatform.logSink, "trellis")),
    mode: "dev",
    devToken,
    http: { port: wanted ?? last?.http ?? 0 },
    nats: {
      kind: "managed",
      ...(last === undefined ? {} : { port: last.nats, websocketPort: last.websocket }),
    },
    say,
  });
  const { nats } = plane;
  if (nats !== undefined) {
    const http = Number(new URL(plane.url).port);
    keepPorts(folder.data, { http, nats: nats.port, websocket: nats.websocketPort });
  }
  return plane;
}

function announce({ terminal, folder: here }: CommandContext, plane: ControlPlane, folder: DevFolder): void {
  const { url, rootFingerprint: root, transports } = plane;
  if (terminal.json) return terminal.value({ event: "ready", url, root, transports });
  const { bold, dim } = terminal.colours;
  terminal.line(bold("Trellis is running for this project"));
  terminal.line(`  platform  ${url}`);
  terminal.line(`  broker    ${transports.tcp.join(", ")}`);
  terminal.line(`  data      ${relative(here, folder.path)}`);
  terminal.line(
    dim("  Ctrl-C stops it. From another terminal: trellis services, trellis call, trellis doctor"),
  );
  terminal.line();
}

/** A developer is told of steps and of what goes wrong, not of every connection. */
function quiet(log: Logger): Logger {
  return { ...log, info: () => undefined };
}

/** Aborts when the platform ends by itself, which is a failure. */
function endOf(context: CommandContext, plane: ControlPlane): AbortSignal {
  const ended = new AbortController();
  void plane.closed.then((reason) => {
    if (reason === "stopped") return;
    context.terminal.note(
      context.terminal.noteColours.red("nats-server ended by itself; see .trellis/data/nats."),
    );
    context.exit(EXIT.failed);
    ended.abort();
  });
  return ended.signal;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
