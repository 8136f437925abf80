import { type ControlPlane, type ControlPlaneConfig, startControlPlane } from "@trellis/control-plane";
import { createLogger, nodePlatform } from "@trellis/runtime/node";
import type { CommandContext } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { codeOf } from "../../platform/private-file.ts";

const patienceMs = 3_000;

/** Starts a control plane; whatever keeps it from starting is told in words, and so is what it waits for. */
export async function startPlane(context: CommandContext, config: ControlPlaneConfig): Promise<ControlPlane> {
  const { terminal } = context;
  const waiting = setTimeout(() => terminal.note(waitingFor(config)), patienceMs);
  try {
    return await startControlPlane({ log: createLogger(nodePlatform.logSink, "trellis"), ...config });
  } catch (cause) {
    throw cannotStart(config, cause);
  } finally {
    clearTimeout(waiting);
  }
}

function waitingFor({ nats }: ControlPlaneConfig): string {
  return nats?.kind === "external"
    ? `Waiting for nats-server at ${nats.servers.join(", ")} (with the configuration of \`trellis nats config\`) ...`
    : "Waiting for nats-server ...";
}

function cannotStart(config: ControlPlaneConfig, cause: unknown): Error {
  if (!(cause instanceof Error)) return new CliFailure(String(cause));
  if (codeOf(cause) === "EADDRINUSE") {
    return new CliFailure(`Port ${config.http?.port} is taken by another process.`, {
      exitCode: EXIT.usage,
      hint: "Pass another port, or none to take a free one.",
      cause,
    });
  }
  const code = codeOf(cause);
  if (code === "EACCES" || code === "EROFS" || code === "EPERM") {
    return new CliFailure(`${config.dataDir} cannot be written (${code}).`, {
      exitCode: EXIT.usage,
      hint: "Choose a folder that you own.",
      cause,
    });
  }
  if (/in (dev|server) mode/.test(cause.message)) {
    return new CliFailure(cause.message, {
      exitCode: EXIT.usage,
      hint: "What `trellis dev` made is for one developer's machine; a server begins with `trellis server init`.",
      cause,
    });
  }
  const hint = "hint" in cause && typeof cause.hint === "string" ? { hint: cause.hint } : {};
  return new CliFailure(cause.message, { ...hint, cause });
}
