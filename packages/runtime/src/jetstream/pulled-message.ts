import type { Msg } from "@nats-io/nats-core";
import { utf8Bytes } from "@trellis/protocol";
import type { Broker } from "../connect/broker.ts";
import { headerIn, headerText } from "../connect/message-headers.ts";

/** What the server says of a delivery, in the subject on which it wants to hear what became of it. */
export interface DeliveryFacts {
  /** Position in the stream. */
  readonly sequence: number;
  /** How often the message was delivered, this time included. */
  readonly deliveries: number;
  /** When the stream stored it, ms of the broker's clock. */
  readonly storedAt: number;
  /** Messages behind it. */
  readonly pending: number;
}

const ACK = "$JS.ACK.";
/** Tokens after the stream's name in both forms of the subject: consumer, delivered, sequences, time, pending. */
const shortForm = 9;

/**
 * Reads an acknowledgement subject, `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream sequence>
 * .<consumer sequence>.<time, ns>.<pending>[.<random>]`; `undefined` when it is none, or when its sequence is beyond
 * 2^53 - 1 and would be rounded. The time is cut to ms as text: as a number of ns it would be rounded too.
 */
export function readDelivery(subject: string): DeliveryFacts | undefined {
  if (!subject.startsWith(ACK)) return undefined;
  const tokens = subject.split(".");
  const at = tokens.length > shortForm ? 6 : 4;
  const deliveries = Number(tokens[at]);
  const sequence = Number(tokens[at + 1]);
  const storedAt = Number((tokens[at + 3] ?? "").slice(0, -6));
  const pending = Number(tokens[at + 4]);
  if (!(Number.isSafeInteger(sequence) && sequence > 0 && deliveries > 0 && storedAt > 0)) return undefined;
  return { sequence, deliveries, storedAt, pending: Number.isFinite(pending) ? pending : 0 };
}

const ack = utf8Bytes("+ACK");
const terminate = utf8Bytes("+TERM");
const inProgress = utf8Bytes("+WPI");

/** Where a pulled message goes when it is settled. */
export interface MessageOwner {
  readonly broker: Broker;
  /** Says what became of a message; while the socket is down it is kept, and said when it is up again. */
  say(reply: string, word: Uint8Array): void;
  settled(message: PulledMessage, how: "ack" | "nak" | "term" | "dropped"): void;
}

/**
 * A message that a durable consumer handed to this process. It is the process's until it is settled, once: by `ack`,
 * `nak`, `term` or `drop`. The server keeps what it delivered over its own restarts, so that a word said late still
 * counts.
 */
export class PulledMessage {
  readonly facts: DeliveryFacts;
  /** Monotonic ms of the last sign of life that the server got. */
  aliveAt: number;
  #message: Msg;
  #headers: string | undefined;
  #settled = false;
  readonly #owner: MessageOwner;

  constructor(message: Msg, input: { facts: DeliveryFacts; owner: MessageOwner; now: number }) {
    this.#message = message;
    this.facts = input.facts;
    this.#owner = input.owner;
    this.aliveAt = input.now;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  /** A header's value, `""` when there is none. */
  header(name: string): string {
    this.#headers ??= headerText(this.#message);
    return headerIn(this.#headers, name);
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  /** It is done. */
  ack(): void {
    this.#settle("ack", ack);
  }

  /** It is to come again, to any replica, after `delayMs`. */
  nak(delayMs = 0): void {
    const delay = Math.max(0, Math.round(delayMs));
    // In nanoseconds, written as text: the product of a long delay would not be exact.
    this.#settle("nak", utf8Bytes(delay === 0 ? "-NAK" : `-NAK {"delay":${delay}000000}`));
  }

  /** It is never to come again, though it was not done. */
  term(): void {
    this.#settle("term", terminate);
  }

  /** It is another's by now: nothing is said of it any more, and it comes again unless the other one settles it. */
  drop(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#owner.settled(this, "dropped");
  }

  /** Tells the server that it is still being worked on. */
  working(now: number): void {
    if (this.#settled) return;
    this.aliveAt = now;
    this.#owner.broker.publish(this.#message.reply ?? "", inProgress);
  }

  /** The server delivered the message again, while it is still being worked on: what we say goes to the new delivery. */
  adopt(newer: Msg, now: number): void {
    this.#message = newer;
    this.working(now);
  }

  #settle(how: "ack" | "nak" | "term", word: Uint8Array): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#owner.say(this.#message.reply ?? "", word);
    this.#owner.settled(this, how);
  }
}
