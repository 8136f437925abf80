import { EVENT_HEADERS, fromHex, type Port, REPLAY_HEADERS, readWhole, toHex } from "@trellis/protocol";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { LazySignal } from "../lifecycle/signals.ts";
import type { Logger } from "../logging/logger.ts";
import type { CallCause, CallOrigin } from "../rpc/call-origin.ts";
import { readTraceparent } from "../telemetry/event-spans.ts";
import { traceparent, type WireTrace } from "../telemetry/trace-context.ts";
import type { EventContext } from "./event-handler.ts";
import type { EventMessage, EventVerdict, VerifiedEvent } from "./event-verifier.ts";

/** An event that a consumer holds, from its arrival until it is settled. */
export class EventDelivery {
  readonly message: PulledMessage;
  readonly origin: EventOrigin;
  /** The key whose order it keeps, if any. */
  readonly key: string | undefined;
  readonly stop = new LazySignal();
  verdict: EventVerdict | Promise<EventVerdict> | undefined;
  /** Attempts made here after the first, while the event was held for its key's sake. */
  retries = 0;

  constructor(message: PulledMessage, origin: EventOrigin, keyed: boolean) {
    this.message = message;
    this.origin = origin;
    this.key = keyed ? paramsOf(origin.message.subject) : undefined;
  }

  /** The event's name as its subject has it, for logs and metrics: never its parameters. */
  get event(): string {
    return this.origin.message.subject.split(".")[3] ?? "";
  }

  get attempt(): number {
    return this.message.facts.deliveries + this.retries;
  }
}

/** The parameters of a subject, as they stand: events with equal ones have one key, whatever the event. */
function paramsOf(subject: string): string {
  return subject.split(".").slice(4).join(".");
}

/** Where an event was published and when it was stored; for one that an operator replays: at first. */
export interface EventOrigin {
  readonly message: EventMessage;
  readonly storedAt: number;
}

/** Reads a replay as the event that it repeats. Only the control plane may publish on a consumer's replay subject. */
export function originOf(message: PulledMessage, replays: string): EventOrigin {
  const { storedAt } = message.facts;
  if (message.subject !== replays) return { message, storedAt };
  const header = (name: string) =>
    message.header(name === EVENT_HEADERS.messageId ? REPLAY_HEADERS.messageId : name);
  return {
    message: { subject: message.header(REPLAY_HEADERS.subject), data: message.data, header },
    storedAt: readWhole(message.header(REPLAY_HEADERS.stored)) ?? storedAt,
  };
}

/** What a handler is told about the event that it works on, and what its own calls inherit. */
export class DeliveryContext implements EventContext, CallOrigin {
  readonly log: Logger;
  readonly attempt: number;
  readonly originId: Uint8Array;
  readonly cause: CallCause;
  readonly tracestate: string | undefined;
  readonly traceBytes: Uint8Array | undefined;
  readonly deadline = Deadline.never();
  readonly #stop: LazySignal;

  constructor(
    delivery: EventDelivery,
    { stamp, address }: Pick<VerifiedEvent, "stamp" | "address">,
    input: { readonly port: Port; readonly log: Logger; readonly trace: WireTrace | undefined },
  ) {
    this.log = input.log;
    this.attempt = delivery.attempt;
    this.#stop = delivery.stop;
    this.cause = { kind: "event", name: address.action, id: stamp.id };
    this.originId = fromHex(stamp.requestId) ?? input.port.random(16);
    if (this.originId.length !== 16) this.originId = input.port.random(16);
    this.traceBytes = input.trace?.trace ?? readTraceparent(stamp.traceparent);
    this.tracestate = input.trace === undefined ? stamp.tracestate || undefined : input.trace.tracestate;
  }

  get requestId(): string {
    return toHex(this.originId);
  }

  get trace(): EventContext["trace"] {
    if (this.traceBytes === undefined) return undefined;
    const head = { traceparent: traceparent(this.traceBytes) };
    return this.tracestate === undefined ? head : { ...head, tracestate: this.tracestate };
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get abortedBy(): AbortSignal | undefined {
    return this.#stop.aborted ? this.#stop.signal : undefined;
  }
}
