import type { Msg } from "@nats-io/nats-core";
import { inboxPrefix, type Port, TransportError, toHex } from "@trellis/protocol";
import type { Broker } from "./broker.ts";

/** Takes the messages of one reply subject until it is released. */
export interface ReplySink {
  onReply(message: Msg): void;
}

/**
 * One wildcard subscription for every answer of a connection: a map from the last token to its taker, no
 * subscription and no timer per request. Tokens hold 64 random bits, so that nobody can address an answer that
 * nobody has told him of; what arrives for an unknown token is counted and dropped. Those who may answer are told
 * tokens of one scope only: a provider that knows its own cannot guess those of the calls to another.
 */
export class Inbox {
  readonly #sinks = new Map<string, ReplySink>();
  readonly #subjectPrefix: string;
  readonly #ownScope: string;
  #next = 0;
  #stray = 0;

  constructor(port: Port, connection: string, kind: "r" | "j") {
    this.#subjectPrefix = `${inboxPrefix(connection)}.${kind}.`;
    this.#ownScope = newReplyScope(port);
  }

  /** Subscribes; `onDenied` hears when the broker refuses, which makes every request impossible. */
  listen(broker: Broker, onDenied: (error: Error) => void): void {
    broker.subscribe(`${this.#subjectPrefix}*`, {
      onMessage: (message) => this.#dispatch(message),
      onDenied,
    });
  }

  /** Answers that came for nobody: late, repeated or forged. */
  get stray(): number {
    return this.#stray;
  }

  get size(): number {
    return this.#sinks.size;
  }

  /** Registers a taker and returns its reply subject, in the scope of those who may know it. */
  open(sink: ReplySink, scope = this.#ownScope): string {
    const token = scope + (this.#next++).toString(36);
    this.#sinks.set(token, sink);
    return this.#subjectPrefix + token;
  }

  release(subject: string): void {
    this.#sinks.delete(subject.slice(this.#subjectPrefix.length));
  }

  #dispatch(message: Msg): void {
    const sink = this.#sinks.get(message.subject.slice(this.#subjectPrefix.length));
    if (sink === undefined) this.#stray += 1;
    else sink.onReply(message);
  }
}

/** The unguessable part of the reply tokens that one party is told. */
export function newReplyScope(port: Port): string {
  return toHex(port.random(8));
}

/** Tells a broker's "nobody listens there" from an answer. */
export function isNoResponders(message: Msg): boolean {
  return message.data.length === 0 && message.headers?.code === 503;
}

/** The error of a request made while the socket is down. */
export function connectionDown(): TransportError {
  return new TransportError({
    code: "trellis.connection.down",
    message: "The broker is not reachable at the moment.",
    hint: "The connection is being restored; try again, or watch `connection.status`.",
  });
}
