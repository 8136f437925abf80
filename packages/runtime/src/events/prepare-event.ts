import type { EventAction } from "@trellis/contract";
import {
  encodeJson,
  eventPlace,
  isEventId,
  isTraceState,
  newId,
  type Port,
  type PreparedEvent,
  toHex,
  ValidationError,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { activeTrace, traceparent, type WireTrace } from "../telemetry/trace-context.ts";

export interface PrepareOptions {
  /**
   * The event's id, 1 to 128 visible ASCII characters. Default: a fresh one. The same id with the same payload is
   * stored once, within two minutes; other services and other events may use it too.
   */
  readonly id?: string;
}

export interface PrepareInput {
  readonly action: EventAction;
  readonly payload: unknown;
  readonly options: PrepareOptions | undefined;
  readonly origin: CallOrigin | undefined;
  /** Trace of the span that publishes; default: of the span that is active. */
  readonly trace?: WireTrace | undefined;
}

export interface PrepareSurroundings {
  readonly port: Port;
  readonly now: number;
  /** Bytes that the broker takes in one message. */
  readonly maxPayload: number;
}

/** What is kept of a message's room for its headers: proof, ids and a trace. */
const headerRoom = 2_048;

/** Makes an event ready to be published: everything about it is fixed, and nothing is sent. */
export function prepareEvent(
  { port, now, maxPayload }: PrepareSurroundings,
  { action, payload, options, origin, trace }: PrepareInput,
): Result<PreparedEvent, ValidationError> {
  const issues = action.payload.issues(payload);
  if (issues !== undefined) return err(new ValidationError({ errors: issues }));
  const encoded = encodeJson(payload);
  if (!encoded.ok) return err(new ValidationError({ errors: encoded.issues }));
  const room = maxPayload - headerRoom;
  if (encoded.text.length > room || port.utf8.length(encoded.text) > room) {
    return refused(`is too large for the broker, which takes ${room} bytes`);
  }
  const id = options?.id ?? newId(port, now);
  if (!isEventId(id)) return refused("has an id that is not 1 to 128 visible ASCII characters");
  const place = eventPlace(action, payload);
  if (!place.ok) return err(new ValidationError({ errors: place.issues }));
  return ok({
    version: 1,
    id,
    api: action.api,
    name: action.name,
    subject: place.subject,
    payload: encoded.text,
    time: now,
    ...(origin === undefined ? {} : { requestId: toHex(origin.originId) }),
    ...traceOf(trace ?? activeTrace() ?? inherited(origin)),
  });
}

function refused(message: string): Result<never, ValidationError> {
  return err(new ValidationError({ errors: [{ path: "", message }] }));
}

function inherited(origin: CallOrigin | undefined): WireTrace | undefined {
  if (origin?.traceBytes === undefined) return undefined;
  const { traceBytes, tracestate } = origin;
  return tracestate === undefined ? { trace: traceBytes } : { trace: traceBytes, tracestate };
}

function traceOf(trace: WireTrace | undefined): { traceparent?: string; tracestate?: string } {
  if (trace === undefined) return {};
  const head = { traceparent: traceparent(trace.trace) };
  const { tracestate } = trace;
  return tracestate === undefined || !isTraceState(tracestate) ? head : { ...head, tracestate };
}
