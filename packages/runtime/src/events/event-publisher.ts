import {
  AuthError,
  type CallErrors,
  EVENT_HEADERS,
  eventLeaf,
  eventMessageId,
  isGranted,
  MAX_MERKLE_LEAVES,
  type PreparedEvent,
  readEventSubject,
  signEvents,
  TransportError,
  UnavailableError,
  utf8Bytes,
  writeEventHeaders,
} from "@trellis/protocol";
import { BaseError, UnexpectedError } from "@trellis/result";
import type { Link } from "../connect/link.ts";
import { encodeHeaders } from "../connect/message-headers.ts";
import type { RequestFailure } from "../jetstream/broker-request.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { type PubAck, PublishError } from "../jetstream/publisher.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { afterTick } from "../lifecycle/tick.ts";
import { EventPublish, type SignedEvent } from "./event-publish.ts";

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
    const payload = utf8Bytes(event.payload);
    this.#inFlight += 1;
    let sent = false;
    try {
      for (let attempt = 0; ; attempt += 1) {
        const tried = await this.#attempt({ event, payload, deadline, attempt, signal: options.signal });
        sent ||= tried.sent;
        const { outcome } = tried;
        if (!(outcome instanceof Error)) return { id: event.id, duplicate: outcome.duplicate };
        if (!mayPass(outcome, attempt) || deadline.expired) throw settled(outcome, { event, sent });
      }
    } finally {
      this.#inFlight -= 1;
    }
  }

  #attempt(input: AttemptInput): Promise<Attempt> {
    const refusal = this.#refusal(input.event);
    if (refusal !== undefined) return Promise.resolve({ outcome: refusal, sent: false });
    return new Promise((resolve) => {
      this.#queue.push({ ...input, resolve });
      if (this.#scheduled) return;
      this.#scheduled = true;
      // Alone, it need not wait for others; under load those of one turn find each other.
      if (this.#inFlight === 1) queueMicrotask(this.#flush);
      else afterTick(this.#flush);
    });
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
      const batch = queue.slice(from, from + MAX_MERKLE_LEAVES);
      this.#sign(batch).forEach((signed, index) => {
        const publishing = batch[index];
        if (publishing !== undefined) this.#send(publishing, signed);
      });
    }
  };

  /** One signature for all of them (E2). */
  #sign(batch: readonly Publishing[]): SignedEvent[] {
    const { platform, session, keys, clock } = this.#link;
    const { port } = platform;
    const { deployment } = session.authorization;
    const digests = batch.map(({ payload }) => port.sha256(payload));
    const stamps = batch.map(({ event }) => stampOf(event));
    const proofs = signEvents(port, {
      leaves: stamps.map((stamp, index) => eventLeaf(port, stamp, digests[index] ?? none)),
      authorization: session.digestText,
      signedAt: Math.floor(clock.now()),
      key: keys.session,
    });
    return batch.map(({ event, payload }, index) => {
      const headers = writeEventHeaders(stamps[index] ?? stampOf(event), proofs[index] ?? "");
      const { subject, id } = event;
      headers[EVENT_HEADERS.messageId] = eventMessageId(
        port,
        { deployment, subject, id },
        digests[index] ?? none,
      );
      return { event, payload, headers: encodeHeaders(headers) };
    });
  }

  #send({ deadline, attempt, signal, resolve }: Publishing, signed: SignedEvent): void {
    const patience = attemptMs[Math.min(attempt, attemptMs.length - 1)] ?? 0;
    const publish = new EventPublish(signed, (outcome) => resolve({ outcome, sent: publish.sent }));
    this.#requests.begin(publish, { timeoutMs: Math.min(deadline.remaining(), patience), signal });
  }
}

const none = new Uint8Array(0);

interface AttemptInput {
  readonly event: PreparedEvent;
  readonly payload: Uint8Array;
  readonly deadline: Deadline;
  readonly attempt: number;
  readonly signal: AbortSignal | undefined;
}

interface Publishing extends AttemptInput {
  readonly resolve: (attempt: Attempt) => void;
}

interface Attempt {
  readonly outcome: PubAck | PublishError | RequestFailure;
  readonly sent: boolean;
}

function stampOf(event: PreparedEvent) {
  const { api, name, subject, id, time, requestId = "", traceparent = "", tracestate = "" } = event;
  const paramCount = readEventSubject(subject)?.params.length ?? 0;
  return { api, action: name, paramCount, subject, id, time, requestId, traceparent, tracestate };
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
function settled(
  outcome: PublishError | RequestFailure,
  { event, sent }: { event: PreparedEvent; sent: boolean },
): CallErrors {
  if (outcome instanceof PublishError) return refusedByStream(outcome, event);
  if (!(outcome instanceof BaseError)) return UnexpectedError.from(outcome);
  const lost =
    outcome.type === "TimeoutError" ||
    (outcome instanceof UnavailableError && outcome.reason === "closed") ||
    (outcome instanceof TransportError && outcome.code === "trellis.jetstream.outcome_unknown");
  if (lost && sent) return outcomeUnknown(event, outcome);
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
