import { NotKnown, PlatformOwned } from "@trellis/control-plane/core";
import { BaseError } from "@trellis/result";
import type { FeedError, TrellisError } from "@trellis/runtime";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { CliFailure, type FailureReport } from "./failure.ts";

/** The exit code of an error of Trellis. */
export function exitCodeOf(error: TrellisError | FeedError): ExitCode {
  if (error.kind === "declared") return declaredExitCode(error);
  switch (error.type) {
    case "TransportError":
      return transportExitCode(error.code);
    case "AuthError":
      return EXIT.refused;
    case "NotFoundError":
      return EXIT.notFound;
    case "ValidationError":
      return EXIT.usage;
    case "TimeoutError":
    case "UnavailableError":
    case "BusyError":
    case "FeedError":
      return EXIT.unavailable;
    default:
      return EXIT.failed;
  }
}

/** By class: another API may have errors of the same name. */
function declaredExitCode(error: Error): ExitCode {
  if (error instanceof NotKnown) return EXIT.notFound;
  return error instanceof PlatformOwned ? EXIT.refused : EXIT.declared;
}

const unreachable = new Set([
  "trellis.bootstrap.unreachable",
  "trellis.bootstrap.unavailable",
  "trellis.runtime.connect_timeout",
  "trellis.runtime.connect_failed",
]);

function transportExitCode(code: string): ExitCode {
  if (unreachable.has(code)) return EXIT.noPlatform;
  if (code === "trellis.runtime.invalid_url") return EXIT.usage;
  return code.startsWith("trellis.bootstrap.") ? EXIT.refused : EXIT.failed;
}

/** Reads any thrown value for its report. */
export function reportOf(thrown: unknown): FailureReport {
  if (thrown instanceof CliFailure) return thrown.report;
  if (thrown instanceof BaseError) {
    const error = thrown as TrellisError | FeedError;
    const { type, message, hint } = error;
    return { exitCode: exitCodeOf(error), type, message, hint, data: dataOf(error), stack: undefined };
  }
  if (isExpected(thrown)) {
    const { message, hint } = thrown;
    return { exitCode: EXIT.failed, type: undefined, message, hint, data: undefined, stack: undefined };
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const hint = "This is a bug of trellis, unless the stack shows a file of yours.";
  return {
    exitCode: EXIT.failed,
    type: undefined,
    message: error.message,
    hint,
    data: undefined,
    stack: error.stack,
  };
}

/** Errors that were made for people, by our other packages and by the system: their message says it all. */
function isExpected(thrown: unknown): thrown is Error & { hint?: string } {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string";
}

function dataOf(error: TrellisError | FeedError): unknown {
  if (error.kind === "declared") return "data" in error ? error.data : undefined;
  return error.type === "ValidationError" ? error.errors : undefined;
}
