import type { Port } from "@trellis/protocol";
import { fromHex, toHex } from "@trellis/protocol";
import type { JobContext, JobLineage, JobTrigger } from "@trellis/protocol/jobs";
import { Deadline } from "../lifecycle/deadline.ts";
import type { CallCause, CallOrigin } from "../rpc/call-origin.ts";
import { readTraceparent } from "../telemetry/event-spans.ts";
import { activeTrace, traceparent, type WireTrace } from "../telemetry/trace-context.ts";
import type { JobAttempt } from "./job-attempt.ts";

interface OriginInput {
  readonly port: Port;
  readonly queue: string;
  /** Of the handler's own span, when somebody traces. */
  readonly trace: WireTrace | undefined;
}

/** What calls made in a job's handler inherit from the job. */
export class JobOrigin implements CallOrigin {
  readonly deadline = Deadline.never();
  readonly #attempt: JobAttempt;
  readonly #input: OriginInput;
  #originId: Uint8Array | undefined;

  constructor(attempt: JobAttempt, input: OriginInput) {
    this.#attempt = attempt;
    this.#input = input;
  }

  /** Read when it is asked for: a handler that calls nobody pays nothing. */
  get originId(): Uint8Array {
    const given = this.#originId ?? fromHex(this.#attempt.facts.context.requestId);
    this.#originId = given?.length === 16 ? given : this.#input.port.random(16);
    return this.#originId;
  }

  get traceBytes(): Uint8Array | undefined {
    return this.#input.trace?.trace ?? readTraceparent(this.#attempt.facts.context.traceparent);
  }

  get tracestate(): string | undefined {
    const { trace } = this.#input;
    return trace === undefined ? this.#attempt.facts.context.tracestate : trace.tracestate;
  }

  /** The job itself: parent of the jobs that it makes. */
  get parent(): { readonly queue: string; readonly jobId: string } {
    return { queue: this.#input.queue, jobId: this.#attempt.jobId };
  }

  get cause(): CallCause {
    const { queue, jobId } = this.parent;
    return { kind: "parentJob", name: queue, id: jobId };
  }

  get signal(): AbortSignal {
    return this.#attempt.stop.signal;
  }

  get abortedBy(): AbortSignal | undefined {
    return this.#attempt.stop.aborted ? this.#attempt.stop.signal : undefined;
  }
}

/** The context of a new job: that of the request in which it is made, else a new one; without a trace it starts one. */
export function newJobContext(port: Port, origin: CallOrigin | undefined): JobContext {
  const active = activeTrace();
  const trace = active?.trace ?? origin?.traceBytes ?? newTrace(port);
  const tracestate = active === undefined ? origin?.tracestate : active.tracestate;
  return {
    requestId: toHex(origin?.originId ?? port.random(16)),
    traceId: toHex(trace.subarray(0, 16)),
    traceparent: traceparent(trace),
    ...(tracestate !== undefined && { tracestate }),
  };
}

function newTrace(port: Port): Uint8Array {
  const trace = new Uint8Array(25);
  trace.set(port.random(24));
  return trace;
}

/** What made a job: the request, event or job in whose handler it is made. */
export function triggerOf(origin: CallOrigin | undefined): JobTrigger {
  return origin?.cause ?? { kind: "serviceCode" };
}

export function lineageOf(origin: CallOrigin | undefined): JobLineage | undefined {
  return origin instanceof JobOrigin ? { parent: origin.parent } : undefined;
}
