import type { EventAction } from "@trellis/contract";
import { type DeadLetter, type DeadReason, decodeJson, type Port } from "@trellis/protocol";
import { isResult } from "@trellis/result";
import type { Logger } from "../logging/logger.ts";
import { withHandleSpan } from "../telemetry/event-spans.ts";
import type { WireTrace } from "../telemetry/trace-context.ts";
import { describeFailure } from "./dead-letters.ts";
import { DeliveryContext, type EventDelivery } from "./event-delivery.ts";
import { failureOf, type ReceivedEvent } from "./event-handler.ts";
import type { EventVerdict, VerifiedEvent } from "./event-verifier.ts";

/** A handler of one event, in its general form. */
export interface EventListener {
  readonly action: EventAction;
  handle(event: ReceivedEvent<unknown>, context: DeliveryContext): unknown;
}

/** How one attempt at an event ended. */
export type Outcome =
  | { readonly kind: "ok" }
  /** The handler failed. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** It is never to be handled. */
  | { readonly kind: "dead"; readonly reason: DeadReason; readonly error: DeadLetter["error"] }
  /** Nothing was tried: it cannot be now, or not here. */
  | { readonly kind: "later"; readonly delayMs: number };

export interface WorkOptions {
  readonly port: Port;
  readonly log: Logger;
  readonly traced: boolean;
  readonly attempts: number;
  listener(api: string, action: string): EventListener | undefined;
}

/** Deliveries over and above the attempts: those that a stop or a restart gave back unbegun. */
const spareDeliveries = 5;
/** Replicas of an older contract give what they do not know to the newer ones; if there are none, it is dead. */
const strangerDeliveries = 20;
const strangerMs = 5_000;
const lookupRetryMs = 1_000;
const succeeded: Outcome = { kind: "ok" };

/** One attempt at an event: verify, find its handler, decode, handle. At once where nothing has to be waited for. */
export function workOn(delivery: EventDelivery, options: WorkOptions): Outcome | Promise<Outcome> {
  const { verdict } = delivery;
  if (!(verdict instanceof Promise)) return workVerified(delivery, verdict, options);
  return verdict.then(
    (settled) => workVerified(delivery, settled, options),
    // The platform's store could not be asked: that says nothing about the event.
    () => later,
  );
}

const later: Outcome = { kind: "later", delayMs: lookupRetryMs };

function workVerified(
  delivery: EventDelivery,
  verdict: EventVerdict | undefined,
  options: WorkOptions,
): Outcome | Promise<Outcome> {
  const { deliveries } = delivery.message.facts;
  if (verdict === undefined) return later;
  if (!verdict.ok) return dead(verdict.reason, "the event was not accepted");
  const { api, action } = verdict.address;
  const listener = options.listener(api, action);
  if (listener === undefined) {
    if (deliveries < strangerDeliveries) return { kind: "later", delayMs: strangerMs };
    return dead("unhandled", `no replica has a handler for ${action} of ${api}`);
  }
  if (deliveries > options.attempts + spareDeliveries) {
    return dead("crashed", `it was delivered ${deliveries} times, and no attempt came to an end`);
  }
  const payload = decodePayload(verdict.payload, listener.action);
  if (!payload.ok) return dead("schema_mismatch", payload.message);
  const event = receivedEvent(verdict, listener.action, payload.value);
  return handle(listener, { delivery, verdict, event }, options);
}

interface Work {
  readonly delivery: EventDelivery;
  readonly verdict: VerifiedEvent;
  readonly event: ReceivedEvent<unknown>;
}

function handle(listener: EventListener, work: Work, options: WorkOptions): Outcome | Promise<Outcome> {
  try {
    if (!options.traced) return run(listener, work, { options, trace: undefined });
    const { stamp } = work.verdict;
    const ran = withHandleSpan(listener.action, stamp, (trace) => run(listener, work, { options, trace }));
    return ran instanceof Promise ? ran.catch(failed) : ran;
  } catch (error) {
    return failed(error);
  }
}

/** Throws, or rejects, what the handler threw. */
function run(
  listener: EventListener,
  { delivery, verdict, event }: Work,
  { options, trace }: { options: WorkOptions; trace: WireTrace | undefined },
): Outcome | Promise<Outcome> {
  const context = new DeliveryContext(delivery, verdict, { ...options, trace });
  const answer = listener.handle(event, context);
  if (isThenable(answer)) return Promise.resolve(answer).then(outcomeOf);
  return outcomeOf(answer);
}

function outcomeOf(answer: unknown): Outcome {
  const failure = failureOf(answer, isResult);
  return failure === undefined ? succeeded : failed(failure);
}

function failed(error: unknown): Outcome {
  return { kind: "failed", error };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

type Decoded =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

function decodePayload(payload: string, action: EventAction): Decoded {
  const parsed = decodeJson(payload);
  const decoded = parsed.ok ? action.payload.decode(parsed.value) : parsed;
  if (decoded.ok) return decoded;
  const [first] = decoded.issues;
  const place = first === undefined || first.path === "" ? "the payload" : first.path;
  return { ok: false, message: `${place} ${first?.message ?? "does not fit its schema"}` };
}

function dead(reason: DeadReason, message: string): Outcome {
  return { kind: "dead", reason, error: { type: reason, message } };
}

/** What a handler's failure is called in a dead letter. */
export function exhausted(error: unknown): Outcome {
  return { kind: "dead", reason: "exhausted", error: describeFailure(error) };
}

export function receivedEvent(
  verified: VerifiedEvent,
  action: EventAction,
  payload: unknown,
): ReceivedEvent<unknown> {
  const { stamp, address, storedAt, authority } = verified;
  const { principal, participant, deployment, instance, connection } = authority.authorization;
  return {
    id: stamp.id,
    name: action.name,
    payload,
    params: Object.fromEntries(action.params.map((name, index) => [name, address.params[index] ?? ""])),
    time: new Date(stamp.time),
    storedAt: new Date(storedAt),
    publisher: { principal, participant, deployment, instance, connectionId: connection },
  };
}
