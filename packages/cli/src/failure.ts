import { EXIT, type ExitCode } from "./exit-code.ts";

export interface FailureOptions {
  /** Default 1. */
  readonly exitCode?: ExitCode;
  /** What to do next. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** What is told about a failure, whatever it is. */
export interface FailureReport {
  readonly exitCode: ExitCode;
  /** Name of the error, for errors of Trellis. */
  readonly type: string | undefined;
  readonly message: string;
  readonly hint: string | undefined;
  /** What a declared error carries, and the issues of a validation error. */
  readonly data: unknown;
  /** Set when nobody expected it. */
  readonly stack: string | undefined;
}

/** A command that cannot do what it was asked for: shown as one line and a hint, without a stack. */
export class CliFailure extends Error {
  override readonly name = "CliFailure";
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.hint = options.hint;
  }

  get report(): FailureReport {
    const { exitCode, message, hint } = this;
    return { exitCode, type: undefined, message, hint, data: undefined, stack: undefined };
  }
}
