import type { JsonObject } from "@trellis/result";
import { CallError, type CallErrorOptions, withDetails } from "./call-error.ts";

/** An error that the other side sent and that this side does not know, or that does not have its proper form. */
export class RemoteError extends CallError {
  static readonly errorType = "RemoteError";
  readonly type = "RemoteError";
  /** The type as the other side named it; `"malformed"` when the answer was no error envelope at all. */
  readonly remoteType: string;

  constructor(options: CallErrorOptions & { readonly remoteType: string; readonly details?: JsonObject }) {
    const { remoteType } = options;
    const text = "The other side answered with an error that is not known here";
    super(options.message ?? text, withDetails(options, { ...options.details, remoteType }));
    this.remoteType = remoteType;
  }
}
