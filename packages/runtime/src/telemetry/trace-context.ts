import {
  context,
  createTraceState,
  isSpanContextValid,
  type Span,
  type SpanContext,
  trace,
} from "@opentelemetry/api";
import { fromHex, toHex } from "@trellis/protocol";

/** W3C trace context as frames carry it. */
export interface WireTrace {
  /** Trace id (16), span id (8), flags (1). */
  readonly trace: Uint8Array;
  readonly tracestate?: string;
}

/** The trace of the active span; `undefined` where nothing traces. */
export function activeTrace(): WireTrace | undefined {
  const span = trace.getSpan(context.active());
  return span === undefined ? undefined : toWire(span.spanContext());
}

export function traceOfSpan(span: Span): WireTrace | undefined {
  return toWire(span.spanContext());
}

function toWire(spanContext: SpanContext): WireTrace | undefined {
  if (!isSpanContextValid(spanContext)) return undefined;
  const bytes = new Uint8Array(25);
  bytes.set(fromHex(spanContext.traceId) ?? new Uint8Array(16), 0);
  bytes.set(fromHex(spanContext.spanId) ?? new Uint8Array(8), 16);
  bytes[24] = spanContext.traceFlags;
  const state = spanContext.traceState?.serialize();
  return state === undefined || state === "" ? { trace: bytes } : { trace: bytes, tracestate: state };
}

/** The span context that 25 trace bytes and a trace state stand for. */
export function toSpanContext(bytes: Uint8Array, tracestate?: string): SpanContext | undefined {
  const spanContext: SpanContext = {
    traceId: toHex(bytes.subarray(0, 16)),
    spanId: toHex(bytes.subarray(16, 24)),
    traceFlags: bytes[24] ?? 0,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  };
  return isSpanContextValid(spanContext) ? spanContext : undefined;
}

/** `00-<trace id>-<span id>-<flags>` of 25 trace bytes. */
export function traceparent(bytes: Uint8Array): string {
  return `00-${toHex(bytes.subarray(0, 16))}-${toHex(bytes.subarray(16, 24))}-${toHex(bytes.subarray(24, 25))}`;
}
