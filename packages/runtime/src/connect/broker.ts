import {
  AuthorizationError,
  type Msg,
  type NatsConnection,
  PermissionViolationError,
  type PublishOptions,
  type Status,
  type Subscription,
  UserAuthenticationExpiredError,
} from "@nats-io/nats-core";
import { AuthError, TransportError } from "@trellis/protocol";
import { soon } from "../lifecycle/soon.ts";
import { within } from "../lifecycle/within.ts";
import type { Logger } from "../logging/logger.ts";
import { failClosedHandshake } from "./handshake.ts";
import { clientHeaders } from "./message-headers.ts";

/**
 * The one place that touches the broker client. It adds what the client lacks: a synchronous answer to "is
 * the socket up", a generation that changes with every reconnect, and permission refusals routed to the
 * publish or subscription that caused them.
 *
 * Invariants:
 * B1. Nothing is published while the socket is down: the client would keep it and send it later, when its
 *     caller has long been told that it failed.
 * B2. A refusal of one subject reaches only the listeners of that subject.
 * B3. What a listener throws ends neither the reading of the socket nor the watching of its state.
 */
export interface BrokerEvents {
  onDown(reason: string): void;
  onDialing(attempt: number): void;
  /** The broker turned a dial down: our credentials are not what it wants. */
  onRefused(): void;
  onUp(generation: number): void;
  /** The client gave up or was closed; `error` is what ended it. */
  onClosed(error: Error | undefined): void;
}

/** What a step of closing may take where the network swallows everything. */
const closeStepMs = 400;

/** Hears of a refused publish: its subject, and the error for whoever waits for an answer to it. */
export type DenialListener = (subject: string, error: AuthError) => void;

type MessageHandler = (message: Msg) => void;

interface Outgoing {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly options: { readonly reply?: string; readonly headers?: Uint8Array } | undefined;
}

export interface SubscribeOptions {
  readonly queue?: string;
  onMessage: MessageHandler;
  /** The broker refused this subscription. */
  onDenied(error: AuthError): void;
}

export class Broker {
  readonly #nats: NatsConnection;
  readonly #log: Logger;
  readonly #events: BrokerEvents;
  readonly #publishDenied = new Map<string, Set<(error: AuthError) => void>>();
  readonly #anyDenied = new Set<DenialListener>();
  #outgoing: Outgoing[] = [];
  #maxPayload = 1024 * 1024;
  #up = true;
  #generation = 1;
  #attempt = 0;
  readonly done: Promise<void>;

  constructor(nats: NatsConnection, events: BrokerEvents, log: Logger) {
    this.#nats = nats;
    this.#events = events;
    this.#log = log;
    this.done = this.#watch();
  }

  /** True while the socket is up as far as the client has told. */
  get up(): boolean {
    return this.#up;
  }

  /** Counts sockets: 1 for the first, one more after every reconnect. */
  get generation(): number {
    return this.#generation;
  }

  /** Largest message the server takes, bytes, headers included. */
  get maxPayload(): number {
    // While it is down the client has no server information; the last limit is the best guess.
    this.#maxPayload = this.#nats.info?.max_payload ?? this.#maxPayload;
    return this.#maxPayload;
  }

  get serverName(): string {
    return this.#nats.getServer();
  }

  /** The client's number on its server and the server's id: how operators find this socket. */
  get serverInfo(): { readonly serverId: string; readonly clientId: number } | undefined {
    const info = this.#nats.info;
    return info === undefined ? undefined : { serverId: info.server_id, clientId: info.client_id };
  }

  /** Hands one message to the socket; false when it is down (B1) or the message is too long. See {@link publishWith}. */
  publish(subject: string, payload: Uint8Array, reply?: string): boolean {
    return this.publishWith(subject, payload, reply === undefined ? undefined : { reply });
  }

  /**
   * {@link publish} with headers. What one turn publishes, in however many steps, is written at once: a write to the
   * socket costs as much as ten messages.
   */
  publishWith(subject: string, payload: Uint8Array, options: Outgoing["options"]): boolean {
    if (!this.#up || this.#nats.isClosed()) return false;
    const length = payload.length + (options?.headers?.length ?? 0);
    if (length > this.maxPayload) {
      this.#log.error({ bytes: length }, "A message is too long for the broker");
      return false;
    }
    if (this.#outgoing.length === 0) soon(this.#write);
    this.#outgoing.push({ subject, payload, options });
    return true;
  }

  readonly #write = (): void => {
    const messages = this.#outgoing;
    this.#outgoing = [];
    for (const { subject, payload, options } of messages) {
      if (!this.#up || this.#nats.isClosed()) return;
      try {
        this.#nats.publish(subject, payload, clientOptions(options));
      } catch (error) {
        this.#log.error({ err: error, bytes: payload.length }, "The broker client refused a message");
      }
    }
  };

  subscribe(subject: string, options: SubscribeOptions): Subscription {
    return this.#nats.subscribe(subject, {
      ...(options.queue === undefined ? {} : { queue: options.queue }),
      callback: (error, message) => {
        try {
          if (error === null) options.onMessage(message);
          else if (error instanceof PermissionViolationError) options.onDenied(denied(error));
        } catch (thrown) {
          // The client reads its socket in the same loop: an exception in there would end the reading for good.
          this.#log.error({ err: thrown }, "A message could not be handled");
        }
      },
    });
  }

  /** Hears of the broker's refusals to publish on `subject`; returns the way to stop. */
  onPublishDenied(subject: string, listener: (error: AuthError) => void): () => void {
    const listeners = this.#publishDenied.get(subject) ?? new Set();
    this.#publishDenied.set(subject, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#publishDenied.delete(subject);
    };
  }

  /** Hears of every refused publish: for those with many requests under way, at no cost per request. */
  onAnyPublishDenied(listener: DenialListener): () => void {
    this.#anyDenied.add(listener);
    return () => void this.#anyDenied.delete(listener);
  }

  /** Resolves when the server has seen everything published so far; rejects when the socket is down. */
  async flush(): Promise<void> {
    if (!this.#up)
      throw new TransportError({ code: "trellis.connection.down", message: "The broker is not reachable." });
    this.#write();
    await this.#nats.flush();
  }

  /** Dials anew, for instance to take up a wider policy. */
  async reconnect(): Promise<void> {
    this.#write();
    await within(this.#nats.flush(), closeStepMs);
    if (!this.#up || this.#nats.isClosed()) return;
    // The client closes the old socket in its own time; nothing may go into it from now on.
    this.#goDown("taking a new socket");
    await this.#nats.reconnect();
  }

  /**
   * Sends what was published, closes the socket and ends the client. Ends by itself within a second or so,
   * whatever state the network is in.
   */
  async close(): Promise<void> {
    this.#write();
    // Closing drops what the client still holds: the answers of this very turn.
    if (this.#up && !this.#nats.isClosed()) await within(this.#nats.flush(), closeStepMs);
    await within(this.#nats.close(), closeStepMs);
    await within(this.done, closeStepMs);
  }

  async #watch(): Promise<void> {
    for await (const status of this.#nats.status()) this.#onStatus(status);
    const error = await this.#nats.closed();
    this.#up = false;
    this.#events.onClosed(error instanceof Error ? error : undefined);
  }

  #onStatus(status: Status): void {
    switch (status.type) {
      case "disconnect":
        if (!this.#up) return failClosedHandshake(this.#nats);
        return this.#goDown("connection lost");
      case "reconnecting":
        this.#attempt += 1;
        return this.#events.onDialing(this.#attempt);
      case "reconnect":
        // The client repeats this event once per failed attempt; only the first tells something.
        if (this.#up) return;
        this.#up = true;
        this.#generation += 1;
        return this.#events.onUp(this.#generation);
      case "error":
        return this.#onError(status.error);
      default:
        return;
    }
  }

  #goDown(reason: string): void {
    this.#up = false;
    this.#attempt = 0;
    this.#events.onDown(reason);
  }

  #onError(error: Error): void {
    if (error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError)
      return this.#events.onRefused();
    if (!(error instanceof PermissionViolationError)) {
      this.#log.debug({ error: error.name }, "The broker reported an error");
      return;
    }
    if (error.operation !== "publish") return;
    const listeners = this.#publishDenied.get(error.subject);
    this.#log.warn({ subject: error.subject }, "The broker refused a publish");
    for (const listener of listeners ?? []) listener(denied(error));
    for (const listener of this.#anyDenied) listener(error.subject, denied(error));
  }
}

function clientOptions(options: Outgoing["options"]): PublishOptions | undefined {
  if (options === undefined) return undefined;
  const { reply, headers } = options;
  return {
    ...(reply !== undefined && { reply }),
    ...(headers !== undefined && { headers: clientHeaders(headers) }),
  };
}

function denied(cause: PermissionViolationError): AuthError {
  return new AuthError({
    reason: "denied_by_broker",
    message: `The broker refused this connection's ${cause.operation}.`,
    hint: "The participant's grants do not include it: declare the use in its contract and install that.",
  });
}
