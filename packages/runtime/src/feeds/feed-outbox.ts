import { MAX_FEED_ITEMS } from "@trellis/protocol";
import { type Deferred, deferred } from "../lifecycle/deferred.ts";
import { afterTick } from "../lifecycle/tick.ts";

/** Where an outbox sends its frames. */
export interface FrameSink {
  /** Nothing is on its way: an item may go at once. */
  readonly idle: boolean;
  /** Bytes of JSON text that the broker takes in one frame. */
  readonly room: number;
  /** Whether a frame with so many bytes of JSON text may go now. */
  allows(bytes: number): boolean;
  /** Sends one frame. */
  items(payload: string): void;
}

/** Bytes of items that share a frame; a larger item travels alone. */
const maxFrameBytes = 32 * 1024;
/** What may wait for credit at a producer that does not wait itself. */
const maxWaitingItems = 65_536;
const maxWaitingBytes = 4 * 1024 * 1024;
/** The text of an empty list. */
const brackets = 2;

const SENT = Promise.resolve();

/**
 * The items of one session on their way into frames. Items of one turn share a frame; what the window does not take
 * waits. Waiting producers share one promise, so that an item costs no object of its own.
 */
export class FeedOutbox {
  readonly #sink: FrameSink;
  readonly #onEmpty: () => void;
  #texts: string[] = [];
  #sizes: number[] = [];
  #bytes = 0;
  #scheduled = false;
  #room: Deferred<void> | undefined;

  /** `onEmpty` is called whenever everything has been sent. */
  constructor(sink: FrameSink, onEmpty: () => void) {
    this.#sink = sink;
    this.#onEmpty = onEmpty;
  }

  /** True when a producer that does not wait is too far ahead of its consumer. */
  get overflown(): boolean {
    return this.#texts.length > maxWaitingItems || this.#bytes > maxWaitingBytes;
  }

  /** Takes an item of so many bytes; the promise resolves when the next one may come. */
  push(text: string, bytes: number): Promise<void> {
    this.#texts.push(text);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    this.#schedule();
    if (!this.#full) return SENT;
    this.#room ??= deferred();
    return this.#room.promise;
  }

  /** Sends what waits, as far as the window lets it. */
  flush(): void {
    let taken = 0;
    while (taken < this.#texts.length) {
      const { count, bytes } = this.#gather(taken);
      if (!this.#sink.allows(bytes)) break;
      const payload = `[${this.#texts.slice(taken, taken + count).join(",")}]`;
      taken += count;
      this.#bytes -= bytes - brackets - count + 1;
      this.#sink.items(payload);
    }
    if (taken > 0) {
      this.#texts = taken === this.#texts.length ? [] : this.#texts.slice(taken);
      this.#sizes = taken === this.#sizes.length ? [] : this.#sizes.slice(taken);
    }
    if (!this.#full) this.#release();
    if (this.#texts.length === 0) this.#onEmpty();
  }

  /** Drops what waits; who waits for room is told why. */
  close(error: Error): void {
    this.#texts = [];
    this.#sizes = [];
    this.#bytes = 0;
    if (this.#room === undefined) return;
    // A producer that does not look at the promise is no reason for the process to end.
    this.#room.promise.catch(() => {});
    this.#room.reject(error);
    this.#room = undefined;
  }

  /** A frame's worth waits. */
  get #full(): boolean {
    return this.#texts.length >= MAX_FEED_ITEMS || this.#bytes >= maxFrameBytes;
  }

  readonly #onTick = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.#sink.idle) queueMicrotask(this.#onTick);
    else afterTick(this.#onTick);
  }

  #release(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  /** How many items from `from` on share a frame, and how long its JSON text is. */
  #gather(from: number): { count: number; bytes: number } {
    const most = Math.min(maxFrameBytes, this.#sink.room);
    const last = Math.min(this.#texts.length, from + MAX_FEED_ITEMS);
    let bytes = brackets;
    let count = 0;
    for (let at = from; at < last; at += 1) {
      const size = (this.#sizes[at] ?? 0) + (count === 0 ? 0 : 1);
      if (count > 0 && bytes + size > most) break;
      bytes += size;
      count += 1;
    }
    return { count, bytes };
  }
}
