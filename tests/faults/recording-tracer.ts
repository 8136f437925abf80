import { randomBytes } from "node:crypto";
import {
  type Context,
  createTraceState,
  type Span,
  type SpanContext,
  type SpanOptions,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";

export interface RecordedSpan {
  readonly name: string;
  readonly spanContext: SpanContext;
  readonly parent: SpanContext | undefined;
  ended: boolean;
  failed: boolean;
}

/** A tracer that records spans in memory: all that these tests need of an OpenTelemetry SDK. */
export class RecordingTracerProvider implements TracerProvider {
  readonly spans: RecordedSpan[] = [];

  getTracer(): Tracer {
    const startSpan = (name: string, _options?: SpanOptions, context?: Context): Span =>
      this.#start(name, context);
    const startActiveSpan = () => {
      throw new Error("not used");
    };
    return { startSpan, startActiveSpan };
  }

  #start(name: string, context: Context | undefined): Span {
    const parent = context === undefined ? undefined : trace.getSpanContext(context);
    const spanContext: SpanContext = {
      traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
      spanId: randomBytes(8).toString("hex"),
      traceFlags: 1,
      traceState:
        parent === undefined ? createTraceState("vendor=1") : (parent.traceState ?? createTraceState()),
    };
    const recorded: RecordedSpan = { name, spanContext, parent, ended: false, failed: false };
    this.spans.push(recorded);
    return new RecordingSpan(recorded);
  }
}

class RecordingSpan implements Span {
  readonly #recorded: RecordedSpan;

  constructor(recorded: RecordedSpan) {
    this.#recorded = recorded;
  }
  spanContext(): SpanContext {
    return this.#recorded.spanContext;
  }
  setAttribute(): this {
    return this;
  }
  setAttributes(): this {
    return this;
  }
  addEvent(): this {
    return this;
  }
  addLink(): this {
    return this;
  }
  addLinks(): this {
    return this;
  }
  setStatus({ code }: { code: number }): this {
    this.#recorded.failed = code === 2;
    return this;
  }
  updateName(): this {
    return this;
  }
  end(): void {
    this.#recorded.ended = true;
  }
  isRecording(): boolean {
    return true;
  }
  recordException(): void {}
}
