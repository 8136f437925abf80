import type { Msg } from "@nats-io/nats-core";
import type { PreparedEvent } from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";
import { BrokerRequest, type RequestFailure } from "../jetstream/broker-request.ts";
import { noStream } from "../jetstream/broker-requests.ts";
import { type PubAck, PublishError, readAck, unreadableAck } from "../jetstream/publisher.ts";

/** An event with the headers that make it somebody's. */
export interface SignedEvent {
  readonly event: PreparedEvent;
  readonly payload: Uint8Array;
  readonly headers: Uint8Array;
}

/** One attempt to have an event stored. It goes again by itself with a new socket: its message id makes it one. */
export class EventPublish extends BrokerRequest {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly repeatable = true;
  /** It was handed to the socket, and nothing is known of it since. */
  sent = false;
  readonly #onEnd: (outcome: PubAck | PublishError | RequestFailure) => void;

  constructor(
    { event, payload, headers }: SignedEvent,
    onEnd: (outcome: PubAck | PublishError | RequestFailure) => void,
  ) {
    super();
    this.subject = event.subject;
    this.payload = payload;
    this.headers = headers;
    this.#onEnd = onEnd;
  }

  override restart(): void {
    this.sent = true;
  }

  override onReply(message: Msg): void {
    if (isNoResponders(message)) {
      this.sent = false; // nobody took it
      return this.onMissing();
    }
    this.done();
    this.#onEnd(readAck(message) ?? unreadableAck());
  }

  override fail(error: RequestFailure): void {
    this.#onEnd(error.type === "TimeoutError" && this.misses > 0 && !this.sent ? noStream() : error);
  }
}
