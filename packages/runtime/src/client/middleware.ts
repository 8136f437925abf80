import type { TrellisError } from "@trellis/protocol";
import { AsyncResult, type Result } from "@trellis/result";
import type { CallOptions } from "../rpc/rpc-caller.ts";
import type { MakeCall } from "../rpc/rpc-facade.ts";

/** An outgoing call as middleware sees it. */
export interface OutgoingCall {
  readonly api: string;
  /** Dotted name of the action. */
  readonly name: string;
  readonly input: unknown;
  readonly options: CallOptions;
}

/** Goes on with the call, if wanted under other options. */
export type NextCall = (options?: CallOptions) => AsyncResult<unknown, TrellisError>;

/**
 * Stands around every outgoing call: may look, wait, change the options, answer in its place, or call again.
 * What it throws becomes an `UnexpectedError` of the call.
 */
export type ClientMiddleware = (
  call: OutgoingCall,
  next: NextCall,
) => PromiseLike<Result<unknown, TrellisError>>;

/** Puts middleware around a call, the first one outermost. */
export function withClientMiddleware(chain: readonly ClientMiddleware[], call: MakeCall): MakeCall {
  return chain.reduceRight<MakeCall>(
    (inner, middleware) => (request) => {
      const { action, input, options = {} } = request;
      const next: NextCall = (changed) =>
        inner(changed === undefined ? request : { ...request, options: changed });
      return AsyncResult.from(
        Promise.resolve().then(() =>
          middleware({ api: action.api, name: action.name, input, options }, next),
        ),
      );
    },
    call,
  );
}
