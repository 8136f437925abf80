import type { Deadline } from "../lifecycle/deadline.ts";

/** What a handler works on, for the records of what it makes. */
export interface CallCause {
  readonly kind: "rpc" | "event" | "parentJob";
  /** Of the action, event or queue. */
  readonly name: string;
  /** Of the request, event or job. */
  readonly id: string;
}

/** What a call made inside a handler inherits from the request that the handler works on. */
export interface CallOrigin {
  /** 16 bytes that name the request as a whole, across all hops. */
  readonly originId: Uint8Array;
  readonly cause: CallCause;
  /** Trace id, span id, flags: 25 bytes. */
  readonly traceBytes: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly deadline: Deadline;
  /** Ends the calls that a handler made when the handler itself is aborted. */
  readonly signal: AbortSignal;
  /** The same, once it is aborted; asking does not make a signal. */
  readonly abortedBy: AbortSignal | undefined;
}
