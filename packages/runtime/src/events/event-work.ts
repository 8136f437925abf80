import type { EventAction } from "@trellis/contract";
import { type DeadLetter, type DeadReason, decodeJsonBytes, type Port } from "@trellis/protocol";
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

/** One attempt at an event: verify, find its handler, decode, handle. Never throws. */
export async function workOn(delivery: EventDelivery, options: WorkOptions): Promise<Outcome> {
  const { deliveries } = delivery.message.facts;
  const verdict = await settledVerdict(delivery);
  if (verdict === undefined) return { kind: "later", delayMs: lookupRetryMs };
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
  const payload = decodePayload(delivery, listener.action, options.port);
  if (!payload.ok) return dead("schema_mismatch", payload.message);
  try {
    const event = receivedEvent(verdict, listener.action, payload.value);
    const failure = await handle(listener, { delivery, verdict, event }, options);
    return failure === undefined ? succeeded : { kind: "failed", error: failure };
  } catch (error) {
    return { kind: "failed", error };
  }
}

async function settledVerdict(delivery: EventDelivery): Promise<EventVerdict | undefined> {
  try {
    return await delivery.verdict;
  } catch {
    return undefined; // the platform's store could not be asked: that says nothing about the event
  }
}

function handle(
  listener: EventListener,
  work: { delivery: EventDelivery; verdict: VerifiedEvent; event: ReceivedEvent<unknown> },
  options: WorkOptions,
): Promise<unknown> {
  const { delivery, verdict, event } = work;
  const run = async (trace: WireTrace | undefined): Promise<unknown> => {
    const context = new DeliveryContext(delivery, verdict.stamp, { ...options, trace });
    return failureOf(await listener.handle(event, context), isResult);
  };
  if (!options.traced) return run(undefined);
  return withHandleSpan(listener.action, verdict.stamp, run);
}

type Decoded =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

function decodePayload({ message }: EventDelivery, action: EventAction, port: Port): Decoded {
  const parsed = decodeJsonBytes(port, message.data);
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
