import { toHex } from "@trellis/protocol";
import type { Logger } from "../logging/logger.ts";
import { traceparent } from "../telemetry/trace-context.ts";
import type { OpenCall } from "./open-call.ts";
import type { Caller, HandlerContext } from "./rpc-handler.ts";

/** A handler's view of its call: everything made when it is first read. */
export class CallContext implements HandlerContext {
  readonly log: Logger;
  readonly #call: OpenCall;
  #caller: Caller | undefined;

  constructor(call: OpenCall, log: Logger) {
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

function callerOf(call: OpenCall): Caller {
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
