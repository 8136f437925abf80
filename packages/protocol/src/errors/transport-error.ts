import { CallError, type CallErrorOptions, withDetails } from "./call-error.ts";

/** The connection, or the way to it, failed. `code` says where, `hint` what to do about it. */
export class TransportError extends CallError {
  static readonly errorType = "TransportError";
  readonly type = "TransportError";
  /** Dotted: `trellis.bootstrap.unreachable`. */
  readonly code: string;

  constructor(options: CallErrorOptions & { readonly code: string }) {
    const { code } = options;
    super(options.message ?? `The connection failed (${code})`, withDetails(options, { code }));
    this.code = code;
  }
}
