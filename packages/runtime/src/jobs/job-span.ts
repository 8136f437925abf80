import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { JobContext } from "@trellis/protocol/jobs";
import { readTraceparent } from "../telemetry/event-spans.ts";
import { toSpanContext, traceOfSpan, type WireTrace } from "../telemetry/trace-context.ts";

interface SpanInput {
  readonly service: string;
  readonly queue: string;
  readonly context: JobContext;
  readonly traced: boolean;
}

/** Runs a handler inside `job.handle.<service>.<queue>`, continuing the trace in which the job was made. */
export async function withJobSpan<T>(
  input: SpanInput,
  handle: (trace: WireTrace | undefined) => T | PromiseLike<T>,
): Promise<T> {
  if (!input.traced || !isTracing()) return handle(undefined);
  const bytes = readTraceparent(input.context.traceparent);
  const made = bytes === undefined ? undefined : toSpanContext(bytes, input.context.tracestate);
  const parent = made === undefined ? context.active() : trace.setSpanContext(context.active(), made);
  const name = `job.handle.${input.service}.${input.queue}`;
  const span = trace.getTracer("trellis").startSpan(name, { kind: SpanKind.CONSUMER }, parent);
  if (!span.isRecording()) return handle(undefined);
  span.setAttributes({ "messaging.system": "trellis", "messaging.destination.name": input.queue });
  try {
    return await context.with(trace.setSpan(parent, span), () => handle(traceOfSpan(span)));
  } catch (thrown) {
    span.setStatus({
      code: SpanStatusCode.ERROR,
      message: thrown instanceof Error ? thrown.name : "a handler threw",
    });
    throw thrown;
  } finally {
    span.end();
  }
}

/** How many handlers go by until it is looked again whether anybody traces. */
const lookEvery = 64;
let until = 0;
let tracing = false;

/** Whether a tracing SDK is registered: without one even a span that records nothing costs more than a quick job. */
function isTracing(): boolean {
  until -= 1;
  if (tracing || until > 0) return tracing;
  until = lookEvery;
  const probe = trace.getTracer("trellis").startSpan("probe", {}, ROOT_CONTEXT);
  tracing = isSpanContextValid(probe.spanContext());
  return tracing;
}
