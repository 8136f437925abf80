import type { Command } from "commander";

export interface DataOptions {
  readonly data: string;
}

/** Where a server of this machine answers unless told otherwise. */
export const defaultServerPort = 8420;

export function dataOption(command: Command): Command {
  return command.option("--data <folder>", "the server's data folder", "trellis-data");
}
