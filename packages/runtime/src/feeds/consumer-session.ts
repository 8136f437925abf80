import type { Msg } from "@nats-io/nats-core";
import type { FeedAction } from "@trellis/contract";
import {
  CancelledError,
  decodeError,
  decodeFeedChallenge,
  decodeFeedFrame,
  decodeJsonBytes,
  decodeJsonList,
  deriveFeedKey,
  type FeedEndFrame,
  FeedError,
  type FeedFrame,
  type FeedItemsFrame,
  type FeedOpened,
  FeedReceiver,
  fromHex,
  MAX_FEED_ITEMS,
  type MacKey,
  TransportError,
  type TrellisError,
  ValidationError,
  verifyFeedChallenge,
  verifyFeedFrame,
} from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import { isNoResponders, type ReplySink } from "../connect/inbox.ts";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { BoundedQueue } from "../lifecycle/bounded-queue.ts";
import { inTurn } from "../lifecycle/tick.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { FeedNotes } from "./feed-notes.ts";
import type { FeedOptions, FeedStream } from "./feed-stream.ts";

/** What opens a feed. */
export interface FeedRequest {
  readonly feed: FeedAction;
  readonly input: unknown;
  readonly options: FeedOptions | undefined;
  /** The request that this feed is read for, inside a handler. */
  readonly origin: CallOrigin | undefined;
}

/** Who looks after consumers. */
export interface ConsumerSessionOwner {
  readonly link: Link;
  readonly notes: FeedNotes;
  /** The first item is wanted: opens the session. */
  open(session: ConsumerSession): void;
  /** The provider says something about several sessions. */
  onChallenge(from: ConsumerSession, challenge: { nonce: number; sessions: readonly Uint8Array[] }): void;
  onGone(from: ConsumerSession, sessions: readonly Uint8Array[]): void;
  onEnded(session: ConsumerSession): void;
}

/** The provider's side of an open session, as its consumer knows it. */
export interface Opened {
  readonly id: Uint8Array;
  readonly idText: string;
  /** The provider's connection. */
  readonly connection: string;
  readonly route: ProviderRoute;
  readonly key: MacKey;
  readonly receiver: FeedReceiver;
}

/** Most items that can wait: a window of full frames. */
const capacity = 64 * MAX_FEED_ITEMS;
/** A provider of whom the broker knows nothing is given up after this; a planned reconnect takes less. */
const absentMs = 4_000;

/**
 * The consumer's side of one session: opened by the first `next`, ended once.
 *
 * Items wait in the queue, bounded by the window; each that is handed to the application counts towards credit.
 */
export class ConsumerSession implements FeedStream<unknown, TrellisError>, ReplySink {
  readonly request: FeedRequest;
  readonly #owner: ConsumerSessionOwner;
  readonly #queue: BoundedQueue<unknown>;
  /** Where frames come to; set when it is being opened. */
  subject = "";
  opened: Opened | undefined = undefined;
  #began = false;
  #over: Result<void, TrellisError> | undefined = undefined;
  #ended: { result: AsyncResult<void, TrellisError>; resolve: (end: Result<void, TrellisError>) => void } | undefined =
    undefined;
  #signals: readonly AbortSignal[] = [];
  /** Monotonic ms since when the broker says that nobody listens at the provider's connection. */
  #absentSince: number | undefined = undefined;

  constructor(owner: ConsumerSessionOwner, request: FeedRequest) {
    this.#owner = owner;
    this.request = request;
    this.#queue = new BoundedQueue<unknown>({ capacity, overflow: "reject", onTake: () => this.#onTake() });
  }

  // --- what the application sees ---

  next(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#began) this.#begin();
    return this.#queue.next();
  }

  return(): Promise<IteratorResult<unknown, undefined>> {
    this.#began = true;
    this.#end(ok(undefined));
    return this.#queue.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  get ended(): AsyncResult<void, TrellisError> {
    if (this.#ended === undefined) {
      this.#ended = AsyncResult.deferred<void, TrellisError>();
      if (this.#over !== undefined) this.#ended.resolve(this.#over);
    }
    return this.#ended.result;
  }

  // --- its life ---

  #begin(): void {
    this.#began = true;
    const { options, origin } = this.request;
    const signals = [options?.signal, origin?.signal].filter((signal) => signal !== undefined);
    for (const signal of signals) {
      if (signal.aborted) return this.fail(aborted(signal.reason));
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
    this.#signals = signals;
    this.#owner.open(this);
  }

  readonly #onAbort = (event: Event): void => this.fail(aborted((event.target as AbortSignal).reason));

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** The provider has opened it; from now on frames may come. False when nobody wants it any more. */
  onOpened({ connection, session, challenge }: FeedOpened, route: ProviderRoute): void {
    const { port } = this.#owner.link.platform;
    const id = fromHex(session) ?? new Uint8Array(16);
    const { subject } = this;
    const key = deriveFeedKey(port, { replyKey: route.keys.reply, connection, subject, session: id });
    const receiver = new FeedReceiver(this.#owner.link.clock.monotonic());
    this.opened = { id, idText: session, connection, route, key, receiver };
    if (this.#over !== undefined) this.#owner.notes.add(this.opened, { kind: "close", subject });
    else this.#owner.notes.add(this.opened, { kind: "answer", nonce: challenge, subject });
  }

  /** Ends it early: what waits is dropped, the loop throws. */
  fail(error: TrellisError): void {
    if (this.#over === undefined) this.#queue.abort(error);
    this.#end(err(error));
  }

  /** Ends it once what waits is read. */
  #finish(error: TrellisError | undefined): void {
    if (this.#over !== undefined) return;
    if (error === undefined) this.#queue.end();
    else this.#queue.fail(error);
    this.#end(error === undefined ? ok(undefined) : err(error));
  }

  #end(end: Result<void, TrellisError>): void {
    if (this.#over !== undefined) return;
    this.#over = end;
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#onAbort);
    this.#signals = [];
    const { subject } = this;
    if (this.opened !== undefined) this.#owner.notes.add(this.opened, { kind: "close", subject });
    this.#owner.onEnded(this);
    this.#ended?.resolve(end);
  }

  // --- time ---

  excuse(ms: number): void {
    this.opened?.receiver.excuse(ms);
    if (this.#absentSince !== undefined) this.#absentSince += ms;
  }

  look(now: number): void {
    if (this.opened === undefined) return;
    if (this.#absentSince !== undefined) {
      if (now - this.#absentSince >= absentMs) return this.fail(new FeedError({ reason: "provider_lost" }));
      return this.resume();
    }
    const { receiver } = this.opened;
    const due = receiver.due(now);
    if (due === "lost") return this.fail(new FeedError({ reason: "provider_lost" }));
    if (due === "report") return this.#report();
    if (due === "ask") {
      receiver.asked(now);
      this.resume();
    }
  }

  /** Asks for what may have got lost, and for a sign of life. */
  resume(): void {
    const { opened, subject } = this;
    if (opened !== undefined) this.#owner.notes.add(opened, { kind: "resume", subject });
  }

  /** The provider spoke of this session. */
  heard(): void {
    this.#absentSince = undefined;
    this.opened?.receiver.heard(this.#owner.link.clock.monotonic());
  }

  #report(): void {
    const { opened, subject } = this;
    if (opened !== undefined) this.#owner.notes.add(opened, { kind: "state", subject });
  }

  #onTake(): void {
    if (this.opened?.receiver.handed() === true && this.#over === undefined) this.#report();
  }

  // --- frames ---

  onReply(message: Msg): void {
    inTurn(message.data.length, () => this.#read(message));
  }

  #read(message: Msg): void {
    const { opened, subject } = this;
    if (opened === undefined || this.#over !== undefined) return;
    if (isNoResponders(message)) {
      this.#absentSince ??= this.#owner.link.clock.monotonic();
      return;
    }
    const { port } = this.#owner.link.platform;
    const frame = decodeFeedFrame(port, message.data);
    if (frame === undefined) return this.#readChallenge(message, opened);
    if (!verifyFeedFrame(port, { frame, subject, key: opened.key })) return this.#ignore("forged");
    this.#absentSince = undefined;
    this.#take(frame, message.data.length, opened);
  }

  #readChallenge(message: Msg, { route }: Opened): void {
    const { port } = this.#owner.link.platform;
    const frame = decodeFeedChallenge(port, message.data);
    if (frame === undefined) return this.#ignore("malformed");
    const { subject } = this;
    if (!verifyFeedChallenge(port, { frame, subject, key: route.keys.reply })) return this.#ignore("forged");
    if (frame.kind === "gone") this.#owner.onGone(this, frame.sessions);
    else this.#owner.onChallenge(this, frame);
  }

  #take(frame: FeedFrame, bytes: number, { receiver }: Opened): void {
    const now = this.#owner.link.clock.monotonic();
    const { sequence } = frame;
    const verdict =
      frame.kind === "items" ? receiver.onItems(sequence, bytes, now) : receiver.onEnd(sequence, now);
    switch (verdict) {
      case "ignore":
        return;
      case "resume":
        return this.resume();
      case "overrun":
        return this.fail(overrun());
      case "take":
        if (frame.kind === "items") this.#takeItems(frame, bytes, receiver);
        else this.#takeEnd(frame, receiver);
    }
  }

  #takeItems({ payload }: FeedItemsFrame, bytes: number, receiver: FeedReceiver): void {
    const { feed } = this.request;
    const list = decodeJsonList(this.#owner.link.platform.port, payload);
    if (!list.ok) return this.fail(unreadable(feed, list.issues));
    if (list.values.length > MAX_FEED_ITEMS) return this.fail(overrun());
    const due = receiver.took(list.values.length, bytes);
    for (const value of list.values) {
      const decoded = feed.event.decode(value);
      if (!decoded.ok) return this.#finish(unreadable(feed, decoded.issues));
      this.#queue.push(decoded.value);
    }
    if (due) this.#report();
  }

  #takeEnd({ reason, payload }: FeedEndFrame, receiver: FeedReceiver): void {
    receiver.tookEnd();
    if (reason === "completed") return this.#finish(undefined);
    if (reason !== "failed") return this.#finish(new FeedError({ reason }));
    const parsed = decodeJsonBytes(this.#owner.link.platform.port, payload);
    this.#finish(decodeError(parsed.ok ? parsed.value : undefined, this.request.feed.errors));
  }

  #ignore(reason: string): void {
    this.#owner.link.log.debug({ reason, feed: this.request.feed.name }, "A frame of a feed was ignored");
  }
}

function aborted(cause: unknown): CancelledError {
  return new CancelledError({ reason: "aborted", cause });
}

function overrun(): TransportError {
  const message = "The provider sent more than it was given credit for";
  return new TransportError({ code: "trellis.feed.overrun", message });
}

function unreadable(feed: FeedAction, errors: ValidationError["errors"]): ValidationError {
  const message = `An item of ${feed.name} does not fit the contract that this process was built with`;
  return new ValidationError({ errors, message });
}
