import { CallError, type CallErrorOptions, type Open, withDetails } from "./call-error.ts";

/** The deadline passed. Whether the work was done is not known. */
export class TimeoutError extends CallError {
  static readonly errorType = "TimeoutError";
  readonly type = "TimeoutError";
  /** How long the caller was ready to wait. */
  readonly timeoutMs: number | undefined;

  constructor(options: CallErrorOptions & { readonly timeoutMs?: number } = {}) {
    const { timeoutMs } = options;
    const text = timeoutMs === undefined ? "The deadline passed" : `No answer within ${timeoutMs} ms`;
    super(options.message ?? text, withDetails(options, timeoutMs === undefined ? {} : { timeoutMs }));
    this.timeoutMs = timeoutMs;
  }
}

export type CancelReason = Open<"aborted" | "stopped" | "disconnected" | "completed-elsewhere">;

/** Somebody called it off: the caller's signal, a stop, the end of the caller's connection. */
export class CancelledError extends CallError {
  static readonly errorType = "CancelledError";
  readonly type = "CancelledError";
  readonly reason: CancelReason;

  constructor(options: CallErrorOptions & { readonly reason?: CancelReason } = {}) {
    const reason = options.reason ?? "aborted";
    super(options.message ?? `Cancelled: ${reason}`, withDetails(options, { reason }));
    this.reason = reason;
  }
}

/** The provider has as much work as it takes on. Nothing was begun. */
export class BusyError extends CallError {
  static readonly errorType = "BusyError";
  readonly type = "BusyError";
  /** When to try again, in milliseconds from now. */
  readonly retryAfterMs: number;

  constructor(options: CallErrorOptions & { readonly retryAfterMs: number }) {
    const { retryAfterMs } = options;
    const text = `The provider is busy; try again in ${retryAfterMs} ms`;
    super(options.message ?? text, withDetails(options, { retryAfterMs }));
    this.retryAfterMs = retryAfterMs;
  }
}
