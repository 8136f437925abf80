import type { Readable } from "node:stream";
import type { Command } from "commander";
import type { Terminal } from "./output/terminal.ts";
import type { CoreClient } from "./platform/connect-core.ts";
import { type FoundPlatform, findPlatform } from "./platform/find-platform.ts";

// Whatever is large is loaded when a command needs it: help and mistakes are to be answered at once.

/** What every command is given. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly env: NodeJS.ProcessEnv;
  /** Where the command was called. */
  readonly folder: string;
  readonly stdin: Readable & { isTTY?: boolean };
  /** Says with which code the process is to end when the command is done. Default 0. */
  exit(code: number): void;
  /**
   * From now on Ctrl-C, SIGTERM, SIGHUP and the loss of the output's reader no longer end the process at once:
   * the signal aborts, and the command closes what it has opened. A second Ctrl-C still ends it.
   */
  holdSignals(): AbortSignal;
}

/** Options of every command that talks to a platform. */
export interface PlatformOptions {
  readonly credential?: string;
}

/** Adds the options by which a platform is chosen. */
export function onPlatform(command: Command): Command {
  return command.option(
    "--credential <file>",
    "an administrator's credential of a server (or TRELLIS_CREDENTIAL); default: the `trellis dev` of this folder",
  );
}

/** The platform that the command line and the surroundings mean. */
export function platformOf(context: CommandContext, options: PlatformOptions): FoundPlatform {
  return findPlatform({
    credential: options.credential,
    env: context.env,
    folder: context.folder,
    warn: (text) => context.terminal.note(context.terminal.noteColours.yellow(text)),
  });
}

/** Runs a piece of work with the platform's own API, and closes the connection after it. */
export async function withCore<T>(
  context: CommandContext,
  options: PlatformOptions,
  work: (core: CoreClient, platform: FoundPlatform) => Promise<T>,
): Promise<T> {
  const platform = platformOf(context, options);
  const { connectCore } = await import("./platform/connect-core.ts");
  const core = await connectCore(platform);
  try {
    return await work(core, platform);
  } finally {
    await core.close();
  }
}
