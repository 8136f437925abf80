import { BusyError, CancelledError, TimeoutError, TransportError, UnavailableError } from "@trellis/protocol";
import type { Broker } from "../connect/broker.ts";
import type { Inbox } from "../connect/inbox.ts";
import type { LinkListener } from "../connect/link.ts";
import type { TimerWheel } from "../lifecycle/timer-wheel.ts";
import { systemTimers } from "../lifecycle/timers.ts";
import type { BrokerRequest, RequestOptions, RequestOwner } from "./broker-request.ts";

/** What the requests of a connection need of it; a `Link` is one. */
export interface RequestLink {
  readonly broker: Broker;
  readonly answers: Inbox;
  readonly wheel: TimerWheel;
  readonly isClosed: boolean;
  listen(listener: LinkListener): () => void;
}

/** More at once is a bug; memory stays bounded. */
const maxOpen = 100_000;
/** A server that starts, or a leader that changes, leaves a stream without anybody for a moment, ms. */
const missPauses = [20, 50, 100, 200, 400];

/**
 * All requests of a connection to JetStream that have begun and not ended.
 *
 * Invariants:
 * Q1. Every request ends exactly once: by its answer, its deadline, its signal, a refusal of the broker, or the end
 *     of the link.
 * Q2. While the socket is down requests wait, within their deadline. What was under way when it broke goes again if
 *     that is harmless, and else ends with `trellis.jetstream.outcome_unknown`.
 */
export class BrokerRequests implements RequestOwner {
  readonly #link: RequestLink;
  readonly #open = new Set<BrokerRequest>();
  readonly #expire = (request: BrokerRequest) => this.#end(request, timedOut(request));

  constructor(link: RequestLink) {
    this.#link = link;
    link.listen({
      onDown: () => this.#onDown(),
      onUp: () => this.#onUp(),
      onClosed: () => this.#onClosed(),
      inFlight: () => this.#open.size,
    });
    link.broker.onAnyPublishDenied((subject, error) => {
      for (const request of [...this.#open]) if (request.subject === subject) this.#end(request, error);
    });
  }

  get size(): number {
    return this.#open.size;
  }

  begin(request: BrokerRequest, { timeoutMs, signal }: RequestOptions): void {
    if (this.#link.isClosed) return request.fail(new UnavailableError({ reason: "closed" }));
    if (signal?.aborted === true)
      return request.fail(new CancelledError({ reason: "aborted", cause: signal.reason }));
    if (this.#open.size >= maxOpen)
      return request.fail(new BusyError({ retryAfterMs: 1_000, message: tooMany }));
    request.owner = this;
    request.timeoutMs = timeoutMs;
    request.onExpire = this.#expire;
    this.#open.add(request);
    this.#link.wheel.schedule(request, timeoutMs);
    if (signal !== undefined) this.#listenTo(request, signal);
    this.#send(request);
  }

  settle(request: BrokerRequest): void {
    if (!this.#open.delete(request)) return;
    this.#link.wheel.cancel(request);
    this.#release(request);
    request.unlisten?.();
  }

  missed(request: BrokerRequest): void {
    const pause = missPauses[request.misses];
    request.misses += 1;
    if (pause === undefined) return this.#end(request, noStream());
    this.#release(request);
    const send = () => {
      if (this.#open.has(request) && request.reply === undefined) this.#send(request);
    };
    systemTimers.set(send, pause, { background: true });
  }

  #send(request: BrokerRequest): void {
    const { broker, answers } = this.#link;
    if (!broker.up) return; // it goes when the socket is back
    request.restart();
    const reply = answers.open(request);
    request.reply = reply;
    const { headers } = request;
    const options = headers === undefined ? { reply } : { reply, headers };
    if (broker.publishWith(request.subject, request.payload, options)) return;
    this.#release(request);
    // The socket is up: the message itself is what the client does not take.
    if (broker.up) this.#end(request, notTaken(request));
  }

  #release(request: BrokerRequest): void {
    if (request.reply === undefined) return;
    this.#link.answers.release(request.reply);
    request.reply = undefined;
  }

  #end(request: BrokerRequest, error: Parameters<BrokerRequest["fail"]>[0]): void {
    this.settle(request);
    request.fail(error);
  }

  #listenTo(request: BrokerRequest, signal: AbortSignal): void {
    const onAbort = () => this.#end(request, new CancelledError({ reason: "aborted", cause: signal.reason }));
    signal.addEventListener("abort", onAbort, { once: true });
    request.unlisten = () => signal.removeEventListener("abort", onAbort);
  }

  #onDown(): void {
    for (const request of [...this.#open]) {
      if (request.reply === undefined) continue;
      if (request.repeatable) this.#release(request);
      else this.#end(request, outcomeUnknown());
    }
  }

  #onUp(): void {
    for (const request of [...this.#open]) if (request.reply === undefined) this.#send(request);
  }

  #onClosed(): void {
    for (const request of [...this.#open]) {
      const lost = request.reply !== undefined && !request.repeatable;
      this.#end(request, lost ? outcomeUnknown() : new UnavailableError({ reason: "closed" }));
    }
  }
}

const tooMany = "Too many requests to the broker are pending in this process";

/** The error of a request to a stream that is not there. */
export function noStream(): TransportError {
  return new TransportError({
    code: "trellis.jetstream.no_stream",
    message: "The broker has no such stream.",
    hint: "Check that the control plane has provisioned it: `trellis doctor`.",
  });
}

function timedOut({ timeoutMs }: BrokerRequest): TimeoutError {
  return new TimeoutError({ timeoutMs: Math.round(timeoutMs) });
}

function notTaken({ payload }: BrokerRequest): TransportError {
  return new TransportError({
    code: "trellis.jetstream.not_sent",
    message: `The broker does not take a message of ${payload.length} bytes.`,
    hint: "Compare its size with the server's max_payload.",
  });
}

/** The error of a write whose answer was lost: it may have been stored. */
export function outcomeUnknown(): TransportError {
  return new TransportError({
    code: "trellis.jetstream.outcome_unknown",
    message: "The connection broke before the broker confirmed the write; it may have been stored.",
    hint: "Read it, or write again where that does no harm.",
  });
}
