import {
  deriveFeedKey,
  encodeFeedEnd,
  encodeFeedItems,
  FEED_ITEMS_OVERHEAD,
  type FeedEndReason,
  type FeedSender,
  type MacKey,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import type { FrameSink } from "./feed-outbox.ts";

/** Where the frames of a session go, and what their key is made of. */
export interface FeedAddress {
  readonly subject: string;
  /** 16 bytes. */
  readonly session: Uint8Array;
  readonly replyKey: MacKey;
}

/** How a session ends, as its consumer is told. */
export interface FeedEnding {
  readonly reason: FeedEndReason;
  /** JSON text of an error envelope for `failed`, else empty. */
  readonly payload: string;
}

/** Makes the frames of one session and hands them to the broker; the sender keeps them until they have arrived. */
export class FeedWriter implements FrameSink {
  readonly #link: Link;
  readonly #sender: FeedSender;
  readonly #address: FeedAddress;
  /** Made for the first frame: many sessions wait long for it. */
  #key: MacKey | undefined = undefined;

  constructor(link: Link, sender: FeedSender, address: FeedAddress) {
    this.#link = link;
    this.#sender = sender;
    this.#address = address;
  }

  get idle(): boolean {
    return this.#sender.unconsumed === 0;
  }

  get room(): number {
    return this.#link.broker.maxPayload - FEED_ITEMS_OVERHEAD;
  }

  allows(bytes: number): boolean {
    return this.#sender.allows(bytes + FEED_ITEMS_OVERHEAD, this.#link.clock.monotonic());
  }

  items(payload: string): void {
    const frame = encodeFeedItems(this.#link.platform.port, { ...this.#next(), payload });
    this.#sender.add(frame);
    this.publish(frame);
  }

  /** Sends the last frame; the first one counts. */
  end(ending: FeedEnding): void {
    if (this.#sender.phase === "ending" || this.#sender.phase === "over") return;
    const frame = encodeFeedEnd(this.#link.platform.port, { ...this.#next(), ...ending });
    this.#sender.end(frame);
    this.publish(frame);
  }

  /** While the socket is down nothing goes out; the frame is kept, and goes when the consumer says what it has. */
  publish(frame: Uint8Array): void {
    this.#link.broker.publish(this.#address.subject, frame);
  }

  #next() {
    const { subject, session } = this.#address;
    this.#key ??= deriveFeedKey(this.#link.platform.port, {
      ...this.#address,
      connection: this.#link.session.connection,
    });
    return { session, subject, key: this.#key, sequence: this.#sender.sent + 1 };
  }
}
