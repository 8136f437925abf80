import {
  AuthError,
  type CallErrors,
  type EventFacts,
  eventContent,
  eventLeaf,
  eventMessageId,
  isGranted,
  MAX_MERKLE_LEAVES,
  type PreparedEvent,
  signEvents,
  TransportError,
  UnavailableError,
  writeEventHeaders,
} from "@trellis/protocol";
import { BaseError, UnexpectedError } from "@trellis/result";
import type { Link } from "../connect/link.ts";
import { encodeHeaders } from "../connect/message-headers.ts";
import type { RequestFailure } from "../jetstream/broker-request.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { PublishError } from "../jetstream/publisher.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { afterTick } from "../lifecycle/tick.ts";
import { EventPublish, type PublishOutcome } from "./event-publish.ts";

/** What the stream says of an event that it holds. */
export interface PublishedEvent {
  readonly id: string;
  /** It was there already: this publish added nothing. */
  readonly duplicate: boolean;
}

export interface PublishOptions {
  /** Milliseconds until the publish is given up. Default: the connection's time-out, 30 000. */
  readonly timeout?: number;
  /** Gives the publish up; whether the event was stored is then not known. */
  readonly signal?: AbortSignal;
}

export type PublishLink = Pick<
  Link,
  "broker" | "clock" | "keys" | "log" | "platform" | "session" | "unavailableBecause" | "isClosed"
>;

/** An attempt whose confirmation does not come is made again, under the same id, ever more patiently, ms. */
const attemptMs = [3_000, 6_000, 12_000];
/** A stream that is not there for so long is not about to come. */
const noStreamMs = 5_000;

/**
 * Signs and publishes events.
 *
 * Invariants:
 * E1. What is published is what was prepared, byte for byte; every attempt has the same message id, so that the
 *     stream holds the event once however often it was sent.
 * E2. Events of one turn share one signature, which is made when they are sent and not before: an event that waited
 *     for the socket is not an old one.
 * E3. An event that may have been stored is never reported as not sent.
 */
export class EventPublisher {
  readonly #link: PublishLink;
  readonly #requests: BrokerRequests;
  readonly #timeoutMs: number;
  #queue: Publishing[] = [];
  #inFlight = 0;
  #scheduled = false;

  constructor(link: PublishLink, requests: BrokerRequests, timeoutMs: number) {
    this.#link = link;
    this.#requests = requests;
    this.#timeoutMs = timeoutMs;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Publishes a prepared event; rejects with one of Trellis' own errors. */
  async publish(event: PreparedEvent, options: PublishOptions = {}): Promise<PublishedEvent> {
    const deadline = Deadline.after(options.timeout ?? this.#timeoutMs);
    const publish = new EventPublish(event);
    this.#inFlight += 1;
    try {
      for (let attempt = 0; ; attempt += 1) {
        const outcome = await this.#attempt({ publish, deadline, attempt, signal: options.signal });
        if (!(outcome instanceof Error)) return { id: event.id, duplicate: outcome.duplicate };
        if (!mayPass(outcome, attempt) || deadline.expired) throw settled(outcome, publish);
      }
    } finally {
      this.#inFlight -= 1;
    }
  }

  #attempt(input: Publishing): Promise<PublishOutcome> | RequestFailure {
    const refusal = this.#refusal(input.publish.event);
    if (refusal !== undefined) return refusal;
    const outcome = input.publish.begin();
    this.#queue.push(input);
    if (!this.#scheduled) {
      this.#scheduled = true;
      // Alone, it need not wait for others; under load those of one turn find each other.
      if (this.#inFlight === 1) queueMicrotask(this.#flush);
      else afterTick(this.#flush);
    }
    return outcome;
  }

  #refusal(event: PreparedEvent): RequestFailure | undefined {
    const { unavailableBecause, session } = this.#link;
    if (this.#link.isClosed) return new UnavailableError({ reason: "closed" });
    if (unavailableBecause !== undefined) {
      return new UnavailableError({ reason: "invalidated", message: `Not available: ${unavailableBecause}` });
    }
    const { deployment } = session.authorization;
    const question = { surface: "publishes", api: event.api, deployment, action: event.name } as const;
    return isGranted(session.grants, question) ? undefined : notGranted(event);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    const queue = this.#queue;
    this.#queue = [];
    for (let from = 0; from < queue.length; from += MAX_MERKLE_LEAVES) {
      const batch = queue.length <= MAX_MERKLE_LEAVES ? queue : queue.slice(from, from + MAX_MERKLE_LEAVES);
      this.#sign(batch);
      for (const publishing of batch) this.#send(publishing);
    }
  };

  /** One signature for all of them (E2). */
  #sign(batch: readonly Publishing[]): void {
    const { platform, session, keys, clock } = this.#link;
    const { port } = platform;
    const { deployment } = session.authorization;
    const leaves: string[] = [];
    const messageIds: string[] = [];
    for (const { publish } of batch) {
      const { subject, id, payload } = publish.event;
      const content = eventContent(port, { deployment, subject, id, payload });
      leaves.push(eventLeaf(port, content, factsOf(publish.event)));
      messageIds.push(eventMessageId(content));
    }
    const signedAt = Math.floor(clock.now());
    const proofs = signEvents(port, {
      leaves,
      authorization: session.digestText,
      signedAt,
      key: keys.session,
    });
    for (const [index, { publish }] of batch.entries()) {
      const { event } = publish;
      const stamp = { id: event.id, messageId: messageIds[index] ?? "", proof: proofs[index] ?? "" };
      publish.headers = encodeHeaders(writeEventHeaders({ ...factsOf(event), ...stamp }));
    }
  }

  #send({ publish, deadline, attempt, signal }: Publishing): void {
    const patience = attemptMs[Math.min(attempt, attemptMs.length - 1)] ?? 0;
    this.#requests.begin(publish, { timeoutMs: Math.min(deadline.remaining(), patience), signal });
  }
}

/** An attempt at an event that waits for its signature. */
interface Publishing {
  readonly publish: EventPublish;
  readonly deadline: Deadline;
  readonly attempt: number;
  readonly signal: AbortSignal | undefined;
}

function factsOf({ time, requestId = "", traceparent = "", tracestate = "" }: PreparedEvent): EventFacts {
  return { time, requestId, traceparent, tracestate };
}

/** Whether another attempt could fare better. */
function mayPass(outcome: PublishError | RequestFailure, attempt: number): boolean {
  if (outcome.name === "TimeoutError") return true;
  if (outcome instanceof TransportError) {
    if (outcome.code === "trellis.jetstream.no_stream") return attempt * 770 < noStreamMs;
    return outcome.code === "trellis.jetstream.outcome_unknown";
  }
  return false;
}

/** What the publisher of an event is told (E3). */
function settled(outcome: PublishError | RequestFailure, { event, wasSent }: EventPublish): CallErrors {
  if (outcome instanceof PublishError) return refusedByStream(outcome, event);
  if (!(outcome instanceof BaseError)) return UnexpectedError.from(outcome);
  const lost =
    outcome.type === "TimeoutError" ||
    (outcome instanceof UnavailableError && outcome.reason === "closed") ||
    (outcome instanceof TransportError && outcome.code === "trellis.jetstream.outcome_unknown");
  if (lost && wasSent) return outcomeUnknown(event, outcome);
  return outcome.type === "TimeoutError" ? notSent(event, outcome) : outcome;
}

function outcomeUnknown(event: PreparedEvent, cause: Error): TransportError {
  return new TransportError({
    code: "trellis.event.outcome_unknown",
    message: `The broker did not confirm the event ${event.name}; it may have been stored.`,
    hint: "Publish the same prepared event again: within two minutes it is stored once, however often it is sent.",
    context: { event: event.id },
    cause,
  });
}

function notSent(event: PreparedEvent, cause: Error): TransportError {
  return new TransportError({
    code: "trellis.event.not_sent",
    message: `The broker was not reachable; the event ${event.name} was not sent.`,
    hint: "The connection is being restored: publish the same prepared event again, or watch `connection.status`.",
    context: { event: event.id },
    cause,
  });
}

function refusedByStream(cause: PublishError, event: PreparedEvent): TransportError {
  return new TransportError({
    code: "trellis.event.refused",
    message: `The broker did not store the event ${event.name}.`,
    hint: "The stream may be at its limits, or the server's storage full: `trellis doctor`.",
    context: { event: event.id, errCode: cause.errCode, description: cause.description },
    cause,
  });
}

function notGranted(event: PreparedEvent): AuthError {
  return new AuthError({
    reason: "not_granted",
    message: `This deployment may not publish ${event.name} of ${event.api}.`,
    hint: "Only participants that implement an API publish its events; install the newest contract.",
  });
}
