import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { nodePlatform, type Platform } from "@trellis/runtime/node";

export interface Sent {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** Listens in on an honest process: what it publishes and receives, and its connection. */
export interface Wiretap {
  readonly platform: Partial<Platform>;
  readonly sent: readonly Sent[];
  readonly nats: NatsConnection;
  /** The last message that was sent to a subject beginning so. */
  last(prefix: string): Sent;
  /** Hears everything that arrives, before the process does. */
  received(listener: (message: Msg) => void): void;
  /** Sees everything that leaves; what it takes (by answering true) does not. */
  intercept(take: (message: Sent) => boolean): void;
}

export function wiretap(): Wiretap {
  const sent: Sent[] = [];
  let connection: NatsConnection | undefined;
  let hear: (message: Msg) => void = () => {};
  let take: (message: Sent) => boolean = () => false;
  const tap = (nats: NatsConnection): NatsConnection => {
    const publish = nats.publish.bind(nats);
    const subscribe = nats.subscribe.bind(nats);
    nats.publish = (subject, payload, more) => {
      const data = payload instanceof Uint8Array ? payload.slice() : Buffer.from(payload ?? "");
      const message = { subject, reply: more?.reply ?? "", data };
      sent.push(message);
      if (!take(message)) publish(subject, payload, more);
    };
    nats.subscribe = (subject, options) => {
      const callback = options?.callback;
      if (callback === undefined) return subscribe(subject, options);
      return subscribe(subject, {
        ...options,
        callback: (error, message) => {
          if (error === null) hear(message);
          void callback(error, message);
        },
      });
    };
    connection = nats;
    return nats;
  };
  return {
    platform: { dial: async (options) => tap(await nodePlatform.dial(options)) },
    sent,
    get nats() {
      if (connection === undefined) throw new Error("Nobody has dialled.");
      return connection;
    },
    last(prefix) {
      const found = sent.findLast(({ subject }) => subject.startsWith(prefix));
      if (found === undefined) throw new Error(`Nothing was sent to ${prefix}.`);
      return found;
    },
    received(listener) {
      hear = listener;
    },
    intercept(taker) {
      take = taker;
    },
  };
}
