import type { HandlerContext } from "../rpc/rpc-handler.ts";

/** An incoming request as middleware sees it: authenticated, authorised and validated. */
export interface IncomingCall {
  readonly api: string;
  /** Dotted name of the action. */
  readonly name: string;
  readonly input: unknown;
  readonly context: HandlerContext;
}

/**
 * Stands around every handler: may look, wait, throw a declared error, or answer in its place. What `next`
 * gives is what the handler returned: a value, an error or a Result.
 */
export type ServiceMiddleware = (call: IncomingCall, next: () => Promise<unknown>) => unknown;

/** Puts middleware around a handler, the first one outermost. */
export function withServiceMiddleware(
  chain: readonly ServiceMiddleware[],
  call: IncomingCall,
  handle: () => unknown,
): unknown {
  const around = chain.reduceRight<() => unknown>(
    (inner, middleware) => () => middleware(call, async () => inner()),
    handle,
  );
  return around();
}
