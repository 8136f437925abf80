import type { Msg } from "@nats-io/nats-core";
import type { FeedAction } from "@trellis/contract";
import {
  CancelledError,
  decodeError,
  decodeJsonBytes,
  decodeJsonList,
  deriveFeedKey,
  type FeedChallenge,
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
  ValidationError,
} from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import type { ReplySink } from "../connect/inbox.ts";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { BoundedQueue } from "../lifecycle/bounded-queue.ts";
import { onAbort } from "../lifecycle/on-abort.ts";
import { inTurn } from "../lifecycle/tick.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { FeedNotes, NotedSession } from "./feed-notes.ts";
import type { FeedFailure, FeedOptions, FeedStream } from "./feed-stream.ts";
import { readFeedMessage } from "./read-feed-message.ts";

/** What opens a feed. */
export interface FeedRequest {
  readonly action: FeedAction;
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
  /** The provider says something about several sessions, by way of this one. */
  onChallenge(from: OpenedSession, challenge: FeedChallenge): void;
  onEnded(session: ConsumerSession): void;
}

/** A session that the provider has opened, as its consumer knows it. */
export interface OpenedSession extends NotedSession {
  readonly idText: string;
  readonly key: MacKey;
  readonly receiver: FeedReceiver;
}

/** Most items that can wait: a window of full frames. */
const capacity = 64 * MAX_FEED_ITEMS;
/** A provider without a connection is given up after this; one that was cut off is back before. */
const absentMs = 5_000;

/**
 * The consumer's side of one session: opened by the first `next`, ended once.
 *
 * Items wait in the queue, bounded by the window; each that is handed to the application counts towards credit.
 */
export class ConsumerSession implements FeedStream<unknown, FeedFailure>, ReplySink {
  readonly request: FeedRequest;
  readonly #owner: ConsumerSessionOwner;
  readonly #queue: BoundedQueue<unknown>;
  /** Where frames come to; set when it is being opened. */
  subject = "";
  opened: OpenedSession | undefined = undefined;
  #began = false;
  #over: Result<void, FeedFailure> | undefined = undefined;
  /** Made when somebody asks how it ended. */
  #ended: ReturnType<typeof AsyncResult.deferred<void, FeedFailure>> | undefined = undefined;
  #unlisten: readonly (() => void)[] = [];
  /** Monotonic ms since when the provider has no connection, as the platform or the broker says. */
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

  get ended(): AsyncResult<void, FeedFailure> {
    if (this.#ended === undefined) {
      this.#ended = AsyncResult.deferred<void, FeedFailure>();
      if (this.#over !== undefined) this.#ended.resolve(this.#over);
    }
    return this.#ended.result;
  }

  // --- its life ---

  #begin(): void {
    this.#began = true;
    const { options, origin } = this.request;
    const signals = [options?.signal, origin?.signal].filter((signal) => signal !== undefined);
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) return this.#onAbort(aborted.reason);
    this.#unlisten = signals.map((signal) => onAbort(signal, (reason) => this.#onAbort(reason)));
    this.#owner.open(this);
  }

  #onAbort(cause: unknown): void {
    this.abort(new CancelledError({ reason: "aborted", cause }));
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** The provider has opened it; from now on frames may come. */
  onOpened({ connection, session: idText, challenge }: FeedOpened, route: ProviderRoute): void {
    const { platform, clock } = this.#owner.link;
    const id = fromHex(idText) ?? new Uint8Array(16);
    const { subject } = this;
    const key = deriveFeedKey(platform.port, {
      replyKey: route.keys.reply,
      connection,
      subject,
      session: id,
    });
    const receiver = new FeedReceiver(clock.monotonic());
    this.opened = { id, idText, connection, route, subject, key, receiver };
    if (this.isOver) this.#owner.notes.add(this.opened, "close");
    else this.#owner.notes.add(this.opened, "answer", challenge);
  }

  /** Ends it; the application still gets what has arrived, then the error. */
  fail(error: FeedFailure): void {
    if (this.isOver) return;
    this.#end(err(error));
    this.#queue.fail(error);
  }

  /** Ends it at once: what waits is dropped. */
  abort(error: FeedFailure): void {
    if (this.isOver) return;
    this.#end(err(error));
    this.#queue.abort(error);
  }

  #complete(): void {
    this.#end(ok(undefined));
    this.#queue.end();
  }

  #end(end: Result<void, FeedFailure>): void {
    if (this.isOver) return;
    this.#over = end;
    for (const unlisten of this.#unlisten) unlisten();
    this.#unlisten = [];
    if (this.opened !== undefined) this.#owner.notes.add(this.opened, "close");
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
    const { receiver } = this.opened;
    if (this.#absentSince !== undefined) {
      return now - this.#absentSince >= absentMs ? this.fail(lost()) : this.resume();
    }
    const due = receiver.due(now);
    if (due === "lost") return this.fail(lost());
    if (due === "report") return this.report();
    if (due === "ask") {
      receiver.asked(now);
      this.resume();
    }
  }

  /** Asks for what may have got lost, and for a sign of life. */
  resume(): void {
    if (this.opened !== undefined) this.#owner.notes.add(this.opened, "resume");
  }

  /** The provider has no connection at the moment. */
  onAbsent(): void {
    this.#absentSince ??= this.#owner.link.clock.monotonic();
  }

  /** The provider spoke of this session. */
  heard(): void {
    this.#absentSince = undefined;
    this.opened?.receiver.heard(this.#owner.link.clock.monotonic());
  }

  report(): void {
    if (this.opened !== undefined) this.#owner.notes.add(this.opened, "state");
  }

  #onTake(): void {
    if (this.opened?.receiver.handed() === true && !this.isOver) this.report();
  }

  // --- frames ---

  onReply(message: Msg): void {
    inTurn(message.data.length, () => this.#read(message));
  }

  #read(message: Msg): void {
    const { opened } = this;
    if (opened === undefined || this.isOver) return;
    const { link, notes } = this.#owner;
    const replyKeys = [opened.route.keys.reply, notes.routeOf(opened).keys.reply];
    const { subject, key } = opened;
    const read = readFeedMessage(link.platform.port, message, { subject, key, replyKeys });
    switch (read.kind) {
      case "absent":
        return this.onAbsent();
      case "ignored":
        return link.log.debug(
          { reason: read.reason, feed: this.request.action.name },
          "A frame of a feed was ignored",
        );
      case "challenge":
      case "gone":
        return this.#owner.onChallenge(opened, read);
      case "items":
      case "end":
        this.#absentSince = undefined;
        return this.#take(read, message.data.length, opened.receiver);
    }
  }

  #take(frame: FeedFrame, bytes: number, receiver: FeedReceiver): void {
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
    const { action } = this.request;
    const list = decodeJsonList(this.#owner.link.platform.port, payload);
    if (!list.ok) return this.fail(unreadable(action, list.issues));
    if (list.values.length > MAX_FEED_ITEMS) return this.fail(overrun());
    const due = receiver.took(list.values.length, bytes);
    for (const value of list.values) {
      const decoded = action.event.decode(value);
      if (!decoded.ok) return this.fail(unreadable(action, decoded.issues));
      this.#queue.push(decoded.value);
    }
    if (due) this.report();
  }

  #takeEnd({ reason, payload }: FeedEndFrame, receiver: FeedReceiver): void {
    receiver.tookEnd();
    if (reason === "completed") return this.#complete();
    if (reason !== "failed") return this.fail(new FeedError({ reason }));
    const parsed = decodeJsonBytes(this.#owner.link.platform.port, payload);
    this.fail(decodeError(parsed.ok ? parsed.value : undefined, this.request.action.errors));
  }
}

function lost(): FeedError {
  return new FeedError({ reason: "provider_lost" });
}

function overrun(): TransportError {
  const message = "The provider sent more than it was given credit for";
  return new TransportError({ code: "trellis.feed.overrun", message });
}

function unreadable(feed: FeedAction, errors: ValidationError["errors"]): ValidationError {
  const message = `An item of ${feed.name} does not fit the contract that this process was built with`;
  return new ValidationError({ errors, message });
}
