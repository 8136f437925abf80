import {
  CancelledError,
  encodeErrorText,
  type FeedEndReason,
  FeedError,
  type FeedNote,
  FeedSender,
  type FeedSenderDecision,
  type TrellisError,
  toHex,
} from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { LazySignal } from "../lifecycle/signals.ts";
import type { HandledRequest } from "../rpc/call-context.ts";
import type { CallCause } from "../rpc/call-origin.ts";
import type { Callable } from "../rpc/callable.ts";
import type { OpenCall } from "../rpc/open-call.ts";
import { encodeItem, itemFailure } from "./encode-item.ts";
import { FeedOutbox } from "./feed-outbox.ts";
import { type FeedEnding, FeedWriter } from "./feed-writer.ts";
import { producerEnd } from "./producer-end.ts";
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
  /** Of the first challenge. */
  readonly nonce: number;
}

/**
 * The provider's side of one session. It *ends* once, for its producer: by its return, its failure, or because nobody
 * reads on; from then on `emit` rejects. It is *over* once, for us: when the consumer has got the end or is gone.
 */
export class ProducerSession implements HandledRequest {
  readonly served: ServedFeed;
  readonly sender: FeedSender;
  /** The keys that it was opened under. */
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
  readonly #owner: ProducerSessionOwner;
  readonly #abort = new LazySignal();
  readonly #writer: FeedWriter;
  #input: unknown;
  /** Made by the first item. */
  #outbox: FeedOutbox | undefined = undefined;
  /** Why `emit` rejects. */
  #ended: Error | undefined = undefined;
  /** The end that is sent once everything before it is out. */
  #closing: FeedEnding | undefined = undefined;

  constructor(input: ProducerSessionInput) {
    const { call, owner, subject, id } = input;
    this.#owner = owner;
    this.served = input.served;
    this.session = call.session;
    this.epoch = call.epoch;
    this.subject = subject;
    this.id = id;
    this.idText = input.idText;
    this.originId = call.originId;
    this.traceBytes = call.traceBytes;
    this.tracestate = call.tracestate;
    this.#input = input.input;
    this.sender = new FeedSender(input.nonce, owner.link.clock.monotonic());
    const { reply: replyKey } = call.epoch.keys;
    this.#writer = new FeedWriter(owner.link, this.sender, { subject, session: id, replyKey });
  }

  get cause(): CallCause {
    return { kind: "rpc", name: this.action.name, id: toHex(this.originId) };
  }

  get action(): Callable {
    return this.served.opening;
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
      this.#log(error, "A producer gave what cannot be sent");
      this.#finish({ reason: "failed", payload: itemFailure(error) }, error);
      this.#abort.abort(error);
      return rejected(error);
    }
    this.#outbox ??= new FeedOutbox(this.#writer, () => this.#sendClosing());
    const { text, bytes } = encoded.value;
    const room = this.#outbox.push(text, bytes);
    if (!this.#outbox.overflown) return room;
    const slow = new FeedError({ reason: "consumer_slow" });
    this.close("consumer_slow", slow);
    return rejected(slow);
  };

  /** Takes what the consumer says. */
  onNote(note: FeedNote): void {
    this.#follow(this.sender.onNote(note, this.#owner.link.clock.monotonic()));
  }

  #follow({ start, room, resend, ask, over }: FeedSenderDecision): void {
    if (over)
      return this.#onOver(new CancelledError({ reason: "cancelled", message: "The consumer has left" }));
    for (const frame of resend) this.#writer.publish(frame);
    if (start) this.#start();
    if (room) this.#outbox?.flush();
    if (ask) this.#owner.ask(this);
  }

  /** Nobody is there to be told: over at once. */
  drop(error: Error): void {
    if (this.sender.drop()) this.#onOver(error);
  }

  /** Ends early, and tells the consumer; what waits for credit is dropped. */
  close(reason: FeedEndReason, error: Error): void {
    this.#outbox?.flush();
    this.#endEarly({ reason, payload: "" }, error);
  }

  /** Ends early with an error of ours. */
  refuse(error: TrellisError): void {
    this.#endEarly({ reason: "failed", payload: encodeErrorText(error) }, error);
  }

  // --- producing ---

  #start(): void {
    this.started = true;
    this.#owner.onStarted(this);
    const input = this.#input;
    this.#input = undefined;
    const failed = (thrown: unknown) => this.#onReturned({ thrown });
    let produced: unknown;
    try {
      produced = this.served.produce(this, input);
    } catch (thrown) {
      return failed(thrown);
    }
    // Through a promise of ours: a foreign thenable may throw, or settle more than once.
    Promise.resolve(produced).then((returned) => this.#onReturned({ returned }), failed);
  }

  #onReturned(outcome: { readonly returned: unknown } | { readonly thrown: unknown }): void {
    this.returned = true;
    this.#owner.onReturned(this);
    // Whatever a producer makes of being told to stop concerns nobody.
    if (this.#ended !== undefined) return;
    const { bug, ...ending } = producerEnd(this.action, outcome);
    if (bug !== undefined) this.#log(bug, "A producer failed");
    this.#finish(ending, new CancelledError({ reason: "completed", message: "The producer has returned" }));
  }

  /** No more items: the end goes out behind those that wait. */
  #finish(ending: FeedEnding, error: Error): void {
    this.#ended = error;
    this.#closing = ending;
    if (this.#outbox === undefined) this.#sendClosing();
    else this.#outbox.flush();
  }

  #sendClosing(): void {
    if (this.#closing === undefined) return;
    this.#writer.end(this.#closing);
    this.#closing = undefined;
  }

  #endEarly(ending: FeedEnding, error: Error): void {
    this.#settle(error);
    this.#writer.end(ending);
    if (!this.returned) this.#abort.abort(error);
  }

  #onOver(error: Error): void {
    this.#settle(error);
    this.#owner.onOver(this);
    if (!this.returned) this.#abort.abort(error);
  }

  /** From now on nothing is produced, and nothing waits. */
  #settle(error: Error): void {
    this.#ended ??= error;
    this.#closing = undefined;
    this.#outbox?.close(error);
    this.#outbox = undefined;
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
