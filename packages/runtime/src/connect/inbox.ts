import type { Msg } from "@nats-io/nats-core";
import { inboxPrefix, type Port, TransportError, toHex } from "@trellis/protocol";
import type { Broker } from "./broker.ts";

/** Takes the messages of one reply subject until it is released. */
export interface ReplySink {
  onReply(message: Msg): void;
}

/**
 * One wildcard subscription for every answer of a connection: a map from the last token to its taker, no
 * subscription and no timer per request. Tokens hold 64 random bits of this process, so that nobody can
 * address an answer that nobody has told him of; what arrives for an unknown token is counted and dropped.
 */
export class Inbox {
  readonly #sinks = new Map<string, ReplySink>();
  readonly #subjectPrefix: string;
  readonly #tokenPrefix: string;
  #next = 0;
  #stray = 0;

  constructor(port: Port, connection: string, kind: "r" | "j") {
    this.#subjectPrefix = `${inboxPrefix(connection)}.${kind}.`;
    this.#tokenPrefix = toHex(port.random(8));
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

  /** Registers a taker and returns its reply subject. */
  open(sink: ReplySink): string {
    const token = this.#tokenPrefix + (this.#next++).toString(36);
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
