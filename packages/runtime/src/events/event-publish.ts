import type { Msg } from "@nats-io/nats-core";
import { type PreparedEvent, utf8Bytes } from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";
import { BrokerRequest, type RequestFailure } from "../jetstream/broker-request.ts";
import { noStream } from "../jetstream/broker-requests.ts";
import { type PubAck, type PublishError, readAck, unreadableAck } from "../jetstream/publisher.ts";

/** How an attempt to have an event stored ended. */
export type PublishOutcome = PubAck | PublishError | RequestFailure;

/**
 * An event on its way into its stream, in one attempt or several. An attempt goes again by itself with a new socket:
 * its message id makes it one.
 */
export class EventPublish extends BrokerRequest {
  readonly event: PreparedEvent;
  readonly payload: Uint8Array;
  readonly repeatable = true;
  /** This attempt was handed to the socket, and nothing is known of it since. */
  #sent = false;
  #sentBefore = false;
  #end: (outcome: PublishOutcome) => void = () => {};

  constructor(event: PreparedEvent) {
    super();
    this.event = event;
    this.payload = utf8Bytes(event.payload);
  }

  get subject(): string {
    return this.event.subject;
  }

  /** Of some attempt nothing is known: it may have been stored. */
  get wasSent(): boolean {
    return this.#sent || this.#sentBefore;
  }

  /** Begins an attempt, which somebody is to send. */
  begin(): Promise<PublishOutcome> {
    this.#sentBefore ||= this.#sent;
    this.#sent = false;
    this.misses = 0;
    return new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  override restart(): void {
    this.#sent = true;
  }

  override onReply(message: Msg): void {
    if (isNoResponders(message)) {
      this.#sent = false; // nobody took it
      return this.onMissing();
    }
    this.done();
    this.#end(readAck(message) ?? unreadableAck());
  }

  override fail(error: RequestFailure): void {
    const isMissing = error.type === "TimeoutError" && this.misses > 0 && !this.#sent;
    this.#end(isMissing ? noStream() : error);
  }
}
