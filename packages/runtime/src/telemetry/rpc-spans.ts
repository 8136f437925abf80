import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { TrellisError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { Callable } from "../rpc/callable.ts";
import type { CallRequest } from "../rpc/rpc-client.ts";
import { toSpanContext, traceOfSpan } from "./trace-context.ts";

// Without a registered SDK every span is a no-op that does not record; the wrappers then add nothing but the
// passing on of the trace that came in.

function tracer(): Tracer {
  return trace.getTracer("trellis");
}

/** Wraps one call in `rpc.client.<Name>`; the opening of a feed in `feed.client.<Name>`. */
export function withClientSpan(
  request: CallRequest,
  call: (request: CallRequest) => AsyncResult<unknown, TrellisError>,
): AsyncResult<unknown, TrellisError> {
  const { action, origin } = request;
  const active = context.active();
  const inherited = trace.getSpan(active) === undefined ? parentOf(origin) : undefined;
  const parent = inherited === undefined ? active : trace.setSpanContext(active, inherited);
  const span = tracer().startSpan(`${action.kind}.client.${action.name}`, { kind: SpanKind.CLIENT }, parent);
  if (!span.isRecording()) return call(request);
  span.setAttributes({ "rpc.system": "trellis", "rpc.service": action.api, "rpc.method": action.name });
  const result = call({ ...request, trace: traceOfSpan(span) });
  void result.toPromise().then((settled) => endSpan(span, settled.isErr() ? settled.error : undefined));
  return result;
}

/** A request inside its handler; the span takes the place of the trace that came in. */
interface TracedRequest extends Pick<CallOrigin, "tracestate"> {
  readonly action: Pick<Callable, "kind" | "name" | "api">;
  traceBytes: Uint8Array | undefined;
}

/** Runs a handler inside `rpc.server.<Name>`, a producer inside `feed.server.<Name>`; continues the caller's trace. */
export function withServerSpan(call: TracedRequest, handle: () => unknown): unknown {
  const { action } = call;
  const remote = parentOf(call);
  const parent = remote === undefined ? context.active() : trace.setSpanContext(context.active(), remote);
  const span = tracer().startSpan(`${action.kind}.server.${action.name}`, { kind: SpanKind.SERVER }, parent);
  if (!span.isRecording()) return handle();
  span.setAttributes({ "rpc.system": "trellis", "rpc.service": action.api, "rpc.method": action.name });
  call.traceBytes = traceOfSpan(span)?.trace ?? call.traceBytes;
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      const returned = await handle();
      endSpan(span, undefined);
      return returned;
    } catch (thrown) {
      endSpan(span, thrown instanceof Error ? thrown : new Error("a handler threw"));
      throw thrown;
    }
  });
}

function parentOf(origin: Pick<CallOrigin, "traceBytes" | "tracestate"> | undefined) {
  return origin?.traceBytes === undefined ? undefined : toSpanContext(origin.traceBytes, origin.tracestate);
}

function endSpan(span: Span, error: Error | undefined): void {
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error.name });
  span.end();
}
