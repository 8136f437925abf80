import type { Subscription } from "@nats-io/nats-core";
import { CancelledError, TransportError, UnavailableError } from "@trellis/protocol";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { RequestFailure } from "./broker-request.ts";
import type { RequestLink } from "./broker-requests.ts";
import { StoredRecord } from "./stored-record.ts";
import { StreamMerge } from "./stream-merge.ts";
import type { Page, StreamReader } from "./stream-reader.ts";

export interface FollowOptions {
  readonly link: RequestLink;
  readonly reader: StreamReader;
  /** What is of interest, as it stands in the stream. */
  readonly filter: string;
  /** The same as it is republished; `undefined` reads what is there and ends with `ready`. */
  readonly live: string | undefined;
  /** The filter takes everything in the stream. */
  readonly contiguous: boolean;
  /** Messages go away by age. */
  readonly ages: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** What a follower gives: a message; the news that everything that was there has been given; or the end. */
export type Followed =
  | { readonly kind: "record"; readonly record: StoredRecord }
  | { readonly kind: "ready" }
  /** The connection was stopped. */
  | { readonly kind: "end" }
  | { readonly kind: "failed"; readonly error: RequestFailure }
  /** The stream was emptied, or made anew: what was given before no longer holds. */
  | { readonly kind: "replaced" };

const pageLimit = 2_048;
const pageBytes = 1024 * 1024;
const pageTimeoutMs = 10_000;
/** How often a stream that is followed is proven to be what was heard of it, ms. */
const proofMs = 10_000;
/** What waits for the reader. Beyond it live messages are left alone: the stream has them. */
const maxWaiting = 1_024;
const maxWaitingBytes = 4 * 1024 * 1024;
/** A stream may be without anybody for a moment after a restart: tries until it counts as missing. */
const missingTries = 4;
/** Tries until a stream counts as replaced: a replica that lags behind looks like one. */
const replacedTries = 3;

/**
 * Follows a part of a stream: what it holds, then what is added, for as long as it is read. No consumer, nothing kept
 * on the server. Pages are read only when the reader asks, one ahead of it, and little is held when he does not; what he is too slow
 * for is read from the stream later, where newer messages may have replaced it.
 */
export class StreamFollower {
  readonly #options: FollowOptions;
  readonly #merge: StreamMerge<StoredRecord>;
  readonly #abort = new AbortController();
  #queue: Followed[] = [];
  #head = 0;
  #bytes = 0;
  #over: Followed | undefined;
  #wake: (() => void) | undefined;
  #subscription: Subscription | undefined;
  #unlisten: (() => void)[] = [];
  #proof: Timer | undefined;
  #missing = 0;
  #replaced = 0;
  #started = false;
  /** The page that is being read. */
  #page: Promise<void> | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#merge = new StreamMerge({ contiguous: options.contiguous, ages: options.ages });
  }

  /** The next item; after an end, a failure or `stop()` the same end again. One call at a time. */
  async next(): Promise<Followed> {
    if (!this.#started) this.#start();
    for (;;) {
      this.#readAhead();
      const item = this.#shift();
      if (item !== undefined) return item;
      if (this.#over !== undefined) return this.#over;
      await (this.#page ?? this.#sleep());
    }
  }

  /** Ends it, from any side; frees what it holds. Idempotent. */
  stop(): void {
    this.#end({ kind: "end" });
    this.#drop();
  }

  #start(): void {
    this.#started = true;
    const { link, live, signal } = this.#options;
    if (link.isClosed)
      return this.#end({ kind: "failed", error: new UnavailableError({ reason: "closed" }) });
    if (signal?.aborted === true) return this.#end(aborted(signal));
    if (signal !== undefined) {
      const onAbort = () => this.#end(aborted(signal), true);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#unlisten.push(() => signal.removeEventListener("abort", onAbort));
    }
    this.#unlisten.push(
      link.listen({
        onUp: () => this.#recheck(),
        onClosed: (reason) => this.#end(closed(reason)),
      }),
    );
    if (live === undefined) return;
    this.#subscription = link.broker.subscribe(live, {
      onMessage: (message) => this.#onLive(StoredRecord.of(message)),
      onDenied: (error) => this.#end({ kind: "failed", error }),
    });
    this.#proveLater();
  }

  #onLive(record: StoredRecord | undefined): void {
    if (record === undefined || this.#over !== undefined) return;
    const full = this.#queue.length - this.#head >= maxWaiting || this.#bytes >= maxWaitingBytes;
    if (full && this.#merge.mode === "live") this.#merge.interrupt();
    else if (this.#merge.live(record)) this.#push({ kind: "record", record });
    if (this.#merge.mode === "reading") this.#wake?.();
  }

  /** While the reader works on one page the next one is fetched; no more than that. */
  #readAhead(): void {
    if (this.#merge.mode === "live" || this.#page !== undefined || this.#over !== undefined) return;
    if (this.#queue.length - this.#head > maxWaiting || this.#bytes > pageBytes) return;
    this.#page = this.#readPage().finally(() => {
      this.#page = undefined;
    });
  }

  async #readPage(): Promise<void> {
    const { reader, filter } = this.#options;
    const from = this.#merge.beginPage();
    const page = await reader.page(
      { filter, from, limit: pageLimit, maxBytes: pageBytes },
      { timeoutMs: pageTimeoutMs, signal: this.#abort.signal },
    );
    if (this.#over !== undefined) return;
    if (page.isOk()) return this.#onPage(page.value);
    const { error } = page;
    // A read may be repeated for ever: a watch outlives every outage.
    if (error.type === "TimeoutError") return;
    if (isMissing(error) && this.#missing < missingTries) {
      this.#missing += 1;
      return;
    }
    this.#end({ kind: "failed", error });
  }

  async #onPage(page: Page): Promise<void> {
    this.#missing = 0;
    const { items, replaced } = this.#merge.endPage(page);
    if (replaced) return this.#onReplaced();
    this.#replaced = 0;
    for (const item of items)
      this.#push(item === "ready" ? { kind: "ready" } : { kind: "record", record: item });
    if (this.#options.live === undefined && this.#merge.ready) this.#end({ kind: "end" });
  }

  async #onReplaced(): Promise<void> {
    this.#replaced += 1;
    if (this.#replaced >= replacedTries) return this.#end({ kind: "replaced" });
    this.#merge.recheck();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      systemTimers.set(resolve, 300, { background: true });
    });
  }

  #recheck(): void {
    this.#merge.recheck();
    this.#wake?.();
  }

  #proveLater(): void {
    this.#proof = systemTimers.set(
      () => {
        this.#recheck();
        this.#proveLater();
      },
      proofMs * (0.9 + Math.random() * 0.2),
      { background: true },
    );
  }

  #push(item: Followed): void {
    this.#queue.push(item);
    if (item.kind === "record") this.#bytes += item.record.bytes;
    this.#wake?.();
  }

  #shift(): Followed | undefined {
    const item = this.#queue[this.#head];
    if (item === undefined) return undefined;
    this.#head += 1;
    if (item.kind === "record") this.#bytes -= item.record.bytes;
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
    }
    return item;
  }

  #drop(): void {
    this.#queue = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #sleep(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** The first end counts. What waits is still given, unless it is not wanted any more. */
  #end(over: Followed, drop = false): void {
    if (this.#over !== undefined) return;
    this.#over = over;
    if (drop) this.#drop();
    this.#subscription?.unsubscribe();
    this.#proof?.clear();
    for (const unlisten of this.#unlisten) unlisten();
    this.#unlisten = [];
    this.#abort.abort();
    this.#wake?.();
  }
}

function isMissing(error: RequestFailure): boolean {
  return error instanceof TransportError && error.code === "trellis.jetstream.no_stream";
}

function aborted(signal: AbortSignal): Followed {
  return { kind: "failed", error: new CancelledError({ reason: "aborted", cause: signal.reason }) };
}

function closed(reason: string): Followed {
  if (reason === "stopped") return { kind: "end" };
  return {
    kind: "failed",
    error: new UnavailableError({ reason: "closed", message: `The connection is closed: ${reason}` }),
  };
}
