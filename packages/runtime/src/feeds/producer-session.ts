import {
  CancelledError,
  deriveFeedKey,
  encodeErrorText,
  encodeFeedEnd,
  encodeFeedItems,
  FEED_ITEMS_OVERHEAD,
  type FeedEndReason,
  FeedError,
  type FeedNote,
  FeedSender,
  type FeedSenderDecision,
  type MacKey,
  type TrellisError,
} from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { LazySignal } from "../lifecycle/signals.ts";
import type { HandledRequest } from "../rpc/call-context.ts";
import type { OpenCall } from "../rpc/open-call.ts";
import { encodeItem, itemFailure } from "./encode-item.ts";
import { FeedOutbox } from "./feed-outbox.ts";
import { type ProducerEnd, producerEnd } from "./producer-end.ts";
import type { ServedFeed } from "./served-feed.ts";

/** Who counts sessions. */
export interface ProducerSessionOwner {
  readonly link: Link;
  /** The session holds nothing any more; its producer may still run. */
  onOver(session: ProducerSession): void;
  onStarted(session: ProducerSession): void;
  /** The producer has returned. */
  onReturned(session: ProducerSession): void;
  /** Asks the consumer for a sign of life. */
  ask(session: ProducerSession): void;
}

export interface ProducerSessionInput {
  readonly owner: ProducerSessionOwner;
  readonly served: ServedFeed;
  readonly call: OpenCall;
  readonly input: unknown;
  /** Where frames go. */
  readonly subject: string;
  readonly id: Uint8Array;
  readonly idText: string;
  readonly nonce: number;
}

/**
 * The provider's side of one session. It *ends* once, for its producer: by its return, its failure, or because nobody
 * reads on; from then on `emit` rejects. It is *over* once, for us: when the consumer has got the end or is gone.
 */
export class ProducerSession implements HandledRequest {
  readonly served: ServedFeed;
  readonly sender: FeedSender;
  readonly epoch: CallerEpoch;
  readonly subject: string;
  readonly id: Uint8Array;
  readonly idText: string;
  readonly originId: Uint8Array;
  traceBytes: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly deadline: Deadline = Deadline.never();
  /** The caller as it last showed itself: after a refresh, the newer authorization. */
  session: CallerSession;
  started = false;
  returned = false;
  /** It went on for long after its session was over. */
  zombie = false;
  /** Monotonic ms at which the session was over while its producer still ran. */
  overAt = 0;
  readonly #owner: ProducerSessionOwner;
  readonly #abort = new LazySignal();
  #input: unknown;
  #key: MacKey | undefined = undefined;
  #outbox: FeedOutbox | undefined = undefined;
  /** Why `emit` rejects. */
  #ended: Error | undefined = undefined;
  /** The end that is sent once everything before it is out. */
  #closing: ProducerEnd | undefined = undefined;

  constructor(input: ProducerSessionInput) {
    const { call, owner } = input;
    this.#owner = owner;
    this.served = input.served;
    this.session = call.session;
    this.epoch = call.epoch;
    this.subject = input.subject;
    this.id = input.id;
    this.idText = input.idText;
    this.originId = call.originId;
    this.traceBytes = call.traceBytes;
    this.tracestate = call.tracestate;
    this.#input = input.input;
    this.sender = new FeedSender(input.nonce, owner.link.clock.monotonic());
  }

  get connection(): string {
    return this.session.authorization.connection;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get abortedBy(): AbortSignal | undefined {
    return this.#abort.aborted ? this.#abort.signal : undefined;
  }

  /** What the producer is given: one function for the whole session. */
  readonly emit = (item: unknown): Promise<void> => {
    if (this.#ended !== undefined) return rejected(this.#ended);
    const encoded = encodeItem(this.#owner.link, this.served.feed, item);
    if (encoded.isErr()) {
      const { error } = encoded;
      this.#fail(error);
      return rejected(error);
    }
    this.#outbox ??= new FeedOutbox(this);
    const { text, bytes } = encoded.value;
    const room = this.#outbox.push(text, bytes);
    if (!this.#outbox.overflown) return room;
    const slow = new FeedError({ reason: "consumer_slow" });
    this.close("consumer_slow", slow);
    return rejected(slow);
  };

  /** Takes what the consumer says. */
  onNote(note: FeedNote): void {
    const decision = this.sender.onNote(note, this.#owner.link.clock.monotonic());
    this.#follow(decision);
  }

  #follow({ start, room, resend, ask, over }: FeedSenderDecision): void {
    if (over)
      return this.#over(new CancelledError({ reason: "cancelled", message: "The consumer has left" }));
    for (const frame of resend) this.#publish(frame);
    if (start) this.#start();
    if (room) this.#outbox?.flush();
    if (ask) this.#owner.ask(this);
  }

  /** Nobody is there to be told: ends at once. */
  drop(error: Error): void {
    if (this.sender.drop()) this.#over(error);
  }

  /** Ends early, and tells the consumer; what waits for credit is dropped. */
  close(reason: FeedEndReason, error: Error): void {
    this.#settle(error);
    this.#closing = undefined;
    this.#sendEnd({ reason, payload: "" });
    this.#abort.abort(error);
  }

  /** Ends early with an error of ours. */
  refuse(error: TrellisError): void {
    this.#settle(error);
    this.#sendEnd({ reason: "failed", payload: encodeErrorText(error) });
    this.#abort.abort(error);
  }

  // --- producing ---

  #start(): void {
    this.started = true;
    this.#owner.onStarted(this);
    const input = this.#input;
    this.#input = undefined;
    let produced: unknown;
    try {
      produced = this.served.produce(this, input);
    } catch (thrown) {
      return this.#onReturned(producerEnd(this.served.feed, { thrown }));
    }
    Promise.resolve(produced).then(
      (returned) => this.#onReturned(producerEnd(this.served.feed, { returned })),
      (thrown) => this.#onReturned(producerEnd(this.served.feed, { thrown })),
    );
  }

  #onReturned(end: ProducerEnd): void {
    this.returned = true;
    this.#owner.onReturned(this);
    if (this.#ended !== undefined) return;
    if (end.bug !== undefined) this.#log(end.bug, "A producer failed");
    this.#ended = new CancelledError({ reason: "completed", message: "The producer has returned" });
    this.#closing = end;
    if (this.#outbox === undefined) this.onEmpty();
    else this.#outbox.flush();
  }

  #fail(bug: TrellisError): void {
    this.#log(bug, "A producer gave what cannot be sent");
    this.#settle(bug);
    this.#sendEnd({ reason: "failed", payload: itemFailure(bug) });
    this.#abort.abort(bug);
  }

  /** From now on nothing is produced. */
  #settle(error: Error): void {
    this.#ended = error;
    this.#outbox?.close(error);
    this.#outbox = undefined;
  }

  #over(error: Error): void {
    if (this.#ended === undefined || this.#outbox?.empty === false) this.#settle(error);
    this.#closing = undefined;
    this.overAt = this.#owner.link.clock.monotonic();
    this.#owner.onOver(this);
    if (!this.returned) this.#abort.abort(error);
  }

  // --- frames ---

  get idle(): boolean {
    return this.sender.unconsumed === 0;
  }

  get room(): number {
    return this.#owner.link.broker.maxPayload - FEED_ITEMS_OVERHEAD;
  }

  allows(bytes: number): boolean {
    return this.sender.allows(bytes + FEED_ITEMS_OVERHEAD, this.#owner.link.clock.monotonic());
  }

  send(payload: string): void {
    const { port } = this.#owner.link.platform;
    const frame = encodeFeedItems(port, { ...this.#place(), payload });
    this.sender.add(frame);
    this.#publish(frame);
  }

  onEmpty(): void {
    const end = this.#closing;
    if (end === undefined) return;
    this.#closing = undefined;
    this.#sendEnd(end);
  }

  #sendEnd({ reason, payload }: Pick<ProducerEnd, "reason" | "payload">): void {
    if (this.sender.phase === "ending" || this.sender.phase === "over") return;
    const frame = encodeFeedEnd(this.#owner.link.platform.port, { ...this.#place(), reason, payload });
    this.sender.end(frame);
    this.#publish(frame);
  }

  #place() {
    const { link } = this.#owner;
    this.#key ??= deriveFeedKey(link.platform.port, {
      replyKey: this.epoch.keys.reply,
      connection: link.session.connection,
      subject: this.subject,
      session: this.id,
    });
    const { id: session, subject } = this;
    return { session, subject, key: this.#key, sequence: this.sender.sent + 1 };
  }

  /** While the socket is down nothing goes out; the frame is kept, and goes when the consumer says what it has. */
  #publish(frame: Uint8Array): void {
    this.#owner.link.broker.publish(this.subject, frame);
  }

  #log(bug: TrellisError, message: string): void {
    const { log } = this.#owner.link;
    log.error({ errorId: bug.id, action: this.served.feed.name, err: bug }, message);
  }
}

/** A rejection that harms nobody who does not look at it. */
function rejected(error: Error): Promise<never> {
  const promise = Promise.reject<never>(error);
  promise.catch(() => {});
  return promise;
}
