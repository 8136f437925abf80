import process from "node:process";
import type { CommandContext } from "./context.ts";
import { CtrlCs } from "./ctrl-c.ts";
import { EXIT } from "./exit-code.ts";
import { Terminal } from "./output/terminal.ts";

/** What a command is given, except the say about the exit code. */
export interface Surroundings extends Omit<CommandContext, "exit"> {
  /** The signal that asked for the end, if one did. */
  readonly interruptedBy: () => NodeJS.Signals | undefined;
}

const endings = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** This process: its streams, its environment, its signals. */
export function nodeSurroundings(json: boolean): Surroundings {
  const { stdout, stderr, env, stdin } = process;
  const terminal = new Terminal({ stdout, stderr, env, json });
  const stopping = new AbortController();
  const heard = new CtrlCs();
  let interruptedBy: NodeJS.Signals | undefined;
  let held = false;
  // Whoever pipes us into `head` has seen enough: that is no failure.
  terminal.onGone(() => (held ? stopping.abort() : process.exit(EXIT.done)));
  const onSignal = (signal: NodeJS.Signals) => {
    if (heard.heard(performance.now()) === "again" && signal === "SIGINT") process.exit(EXIT.interrupted);
    interruptedBy ??= signal;
    stopping.abort();
  };
  return {
    terminal,
    env,
    stdin,
    folder: process.cwd(),
    interruptedBy: () => interruptedBy,
    holdSignals: () => {
      if (!held) for (const signal of endings) process.on(signal, onSignal);
      held = true;
      return stopping.signal;
    },
  };
}
