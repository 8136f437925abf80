import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { EventAction } from "@trellis/contract";
import { fromHex } from "@trellis/protocol";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { toSpanContext, traceOfSpan, type WireTrace } from "./trace-context.ts";

// As for calls: without a registered SDK a span does not record, and the wrappers add nothing.

function tracer(): Tracer {
  return trace.getTracer("trellis");
}

type Described = Pick<EventAction, "name" | "api">;

/** Wraps one publish in `event.publish.<Name>`; `publish` gets the trace that the event is to carry. */
export async function withPublishSpan<T>(
  event: Described,
  origin: CallOrigin | undefined,
  publish: (trace: WireTrace | undefined) => Promise<T>,
): Promise<T> {
  const active = context.active();
  const inherited =
    trace.getSpan(active) === undefined && origin?.traceBytes !== undefined
      ? toSpanContext(origin.traceBytes, origin.tracestate)
      : undefined;
  const parent = inherited === undefined ? active : trace.setSpanContext(active, inherited);
  const span = tracer().startSpan(`event.publish.${event.name}`, { kind: SpanKind.PRODUCER }, parent);
  if (!span.isRecording()) return publish(undefined);
  describe(span, event);
  return ended(span, () => publish(traceOfSpan(span)));
}

/** Runs a handler inside `event.handle.<Name>`, continuing the publisher's trace; `handle` gets the span's own. */
export function withHandleSpan<T>(
  event: Described,
  remote: { readonly traceparent: string; readonly tracestate: string },
  handle: (trace: WireTrace | undefined) => T | Promise<T>,
): T | Promise<T> {
  const bytes = readTraceparent(remote.traceparent);
  const published = bytes === undefined ? undefined : toSpanContext(bytes, remote.tracestate || undefined);
  const parent =
    published === undefined ? context.active() : trace.setSpanContext(context.active(), published);
  const span = tracer().startSpan(`event.handle.${event.name}`, { kind: SpanKind.CONSUMER }, parent);
  if (!span.isRecording()) return handle(undefined);
  describe(span, event);
  return context.with(trace.setSpan(parent, span), () => ended(span, () => handle(traceOfSpan(span))));
}

/** The 25 trace bytes of a `traceparent` that was checked; `undefined` for none. */
export function readTraceparent(text: string): Uint8Array | undefined {
  return text === "" ? undefined : fromHex(text.slice(3).replaceAll("-", ""));
}

function describe(span: Span, { api, name }: Described): void {
  span.setAttributes({
    "messaging.system": "trellis",
    "rpc.service": api,
    "messaging.destination.name": name,
  });
}

async function ended<T>(span: Span, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.name : "a handler threw";
    span.setStatus({ code: SpanStatusCode.ERROR, message });
    throw thrown;
  } finally {
    span.end();
  }
}
