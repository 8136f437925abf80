import { toHex } from "@trellis/protocol";
import type { CallerSession } from "../connect/caller-session.ts";
import type { Logger } from "../logging/logger.ts";
import { traceparent } from "../telemetry/trace-context.ts";
import type { CallOrigin } from "./call-origin.ts";
import type { Caller, HandlerContext } from "./rpc-handler.ts";

/** A request that a handler works on, and who made it. */
export interface HandledRequest extends CallOrigin {
  readonly session: Pick<CallerSession, "authorization" | "capabilities">;
}

/** A handler's view of its request: everything made when it is first read. */
export class CallContext implements HandlerContext {
  readonly log: Logger;
  readonly #call: HandledRequest;
  #caller: Caller | undefined;

  constructor(call: HandledRequest, log: Logger) {
    this.#call = call;
    this.log = log;
  }

  get caller(): Caller {
    this.#caller ??= callerOf(this.#call);
    return this.#caller;
  }

  get requestId(): string {
    return toHex(this.#call.originId);
  }

  get trace(): HandlerContext["trace"] {
    const { traceBytes, tracestate } = this.#call;
    if (traceBytes === undefined) return undefined;
    const head = { traceparent: traceparent(traceBytes) };
    return tracestate === undefined ? head : { ...head, tracestate };
  }

  get deadline(): HandlerContext["deadline"] {
    return this.#call.deadline;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }
}

function callerOf(call: HandledRequest): Caller {
  const { authorization, capabilities } = call.session;
  return {
    principal: authorization.principal,
    participant: authorization.participant,
    deployment: authorization.deployment,
    instance: authorization.instance,
    connectionId: authorization.connection,
    sessionKey: authorization.sessionKey,
    inboxPrefix: authorization.inbox,
    capabilities,
  };
}
