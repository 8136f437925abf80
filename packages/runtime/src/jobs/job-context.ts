import type { Port } from "@trellis/protocol";
import { fromHex, toHex } from "@trellis/protocol";
import type { JobContext, JobLineage, JobTrigger } from "@trellis/protocol/jobs";
import { Deadline } from "../lifecycle/deadline.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { readTraceparent } from "../telemetry/event-spans.ts";
import { activeTrace, traceparent, type WireTrace } from "../telemetry/trace-context.ts";
import type { JobAttempt } from "./job-attempt.ts";

/** What calls made in a job's handler inherit from the job. */
export class JobOrigin implements CallOrigin {
  readonly originId: Uint8Array;
  readonly traceBytes: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly deadline = Deadline.never();
  /** The job itself: parent of the jobs that it makes. */
  readonly parent: { readonly queue: string; readonly jobId: string };
  readonly #attempt: JobAttempt;

  constructor(attempt: JobAttempt, input: { port: Port; queue: string; trace: WireTrace | undefined }) {
    const { context } = attempt.facts;
    const given = fromHex(context.requestId);
    this.originId = given?.length === 16 ? given : input.port.random(16);
    this.traceBytes = input.trace?.trace ?? readTraceparent(context.traceparent);
    this.tracestate = input.trace === undefined ? context.tracestate : input.trace.tracestate;
    this.parent = { queue: input.queue, jobId: attempt.jobId };
    this.#attempt = attempt;
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

/** What made a job, as far as the place tells where it is made. */
export function triggerOf(origin: CallOrigin | undefined): JobTrigger {
  if (origin === undefined) return { kind: "serviceCode" };
  if (origin instanceof JobOrigin)
    return { kind: "parentJob", name: origin.parent.queue, id: origin.parent.jobId };
  return { kind: "rpc", id: toHex(origin.originId) };
}

export function lineageOf(origin: CallOrigin | undefined): JobLineage | undefined {
  return origin instanceof JobOrigin ? { parent: origin.parent } : undefined;
}
