import type { CallErrors } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";

/** What every call takes beside its input. */
export interface CallOptions {
  /** Milliseconds until the call ends as a `TimeoutError`; inside a handler never more than it has left. */
  readonly timeout?: number;
  /** Aborting it cancels the call, also at the provider. */
  readonly signal?: AbortSignal;
}

/** What a call gives: the output, or an error that the action declares, or one of Trellis' own. */
export type RpcResult<Output, Errors> = AsyncResult<Output, Errors | CallErrors>;

/**
 * Calls one RPC. The result holds the output, or one of the errors that the action declares, or one of
 * Trellis' own; it never rejects.
 */
export type RpcCaller<Input, Output, Errors> = [Input] extends [void]
  ? RpcCallerWithoutInput<Output, Errors>
  : RpcCallerWithInput<Input, Output, Errors>;

export interface RpcCallerWithInput<Input, Output, Errors> {
  (input: Input, options?: CallOptions): RpcResult<Output, Errors>;
}

export interface RpcCallerWithoutInput<Output, Errors> {
  (input?: undefined, options?: CallOptions): RpcResult<Output, Errors>;
}
