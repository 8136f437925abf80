import type { Result } from "@trellis/result";
import type { Logger } from "../logging/logger.ts";

/** The verified caller of a request: what the platform signed about it, nothing that it says of itself. */
export interface Caller {
  readonly principal: { readonly kind: string; readonly id: string };
  readonly participant: { readonly id: string; readonly digest: string };
  readonly deployment: string;
  readonly instance: string;
  readonly connectionId: string;
  /** Public session key, base64url. */
  readonly sessionKey: string;
  readonly inboxPrefix: string;
  readonly capabilities: readonly string[];
}

/** What a handler is told about the request it handles. */
export interface HandlerContext {
  readonly caller: Caller;
  /** Names the request across all hops; 32 hex characters. */
  readonly requestId: string;
  /** W3C trace context, when the request is traced. */
  readonly trace: { readonly traceparent: string; readonly tracestate?: string } | undefined;
  readonly deadline: { /** Milliseconds left. */ remaining(): number };
  /**
   * Aborts when the caller cancels or is gone, the deadline passes, or the service gives up its drain. Made when
   * first read: handlers that do not look pay nothing.
   */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface RpcRequest<Input, Client> {
  readonly input: Input;
  readonly context: HandlerContext;
  /** Calls made through it inherit request id, trace and the remaining deadline. */
  readonly client: Client;
}

/** What a handler may give back: the output, a declared error, or a Result of the two; all of it also later. */
export type RpcAnswer<Output, Errors> = Eventual<Output | Errors | Result<Output, Errors>>;

type Eventual<T> = T | PromiseLike<T>;

/** Handles one RPC. What it throws is told to the caller only if the action declares it. */
export type RpcHandler<Input, Output, Errors, Client> = (
  request: RpcRequest<Input, Client>,
) => RpcAnswer<Output, Errors>;

/** Registers the handler of one RPC; a second one for the same RPC throws. */
export interface RpcHandle<Input, Output, Errors, Client> {
  (handler: RpcHandler<Input, Output, Errors, Client>): void;
}
