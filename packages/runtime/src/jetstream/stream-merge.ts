import type { StoredRecord } from "./stored-record.ts";
import type { Page } from "./stream-reader.ts";

/** What the merge looks at; a `StoredRecord` is one. */
export type MergeRecord = Pick<
  StoredRecord,
  "subject" | "sequence" | "timeText" | "expires" | "previous" | "bytes"
>;

export interface MergeOptions {
  /** Everything in the stream is of interest: sequences then leave out nothing. */
  readonly contiguous: boolean;
  /** Messages of the stream go away by age: that one is missing then proves nothing. */
  readonly ages: boolean;
}

/** What the reader is to be given, in this order. */
export type Merged<R> = R | "ready";

export interface PageOutcome<R> {
  readonly items: readonly Merged<R>[];
  /** What was read before is no longer there: the stream was emptied, or is another one. */
  readonly replaced: boolean;
}

/** While a page is read so many live messages are kept; with more another page is read. */
const maxHeld = 1_024;
const maxHeldBytes = 4 * 1024 * 1024;
/** With so many subjects ahead of what pages have proven the stream is looked at again. */
const maxAhead = 4_096;
/** Under writes without end the state counts as complete after so many pages that reached the end. */
const enoughEnds = 4;

/**
 * Puts together what a stream holds (read in pages) and what comes live (republished, without any guarantee), so that
 * every message is passed on once, in order, and none is lost for long. Pure: it decides, others read and wait.
 *
 * Where everything in the stream is of interest a lost message shows by the next sequence. Where only a part is, it
 * shows by the next message of its subject, or else when pages are read again from the last position that pages
 * have proven: live messages do not move that position then.
 *
 * Invariants:
 * M1. Of one subject, messages are passed on in order, each once. Of a contiguous stream that holds for all of them.
 * M2. Everything up to the position was passed on, or superseded before it could be.
 * M3. A live message is passed on only if it follows what was passed on; else pages are read.
 * M4. `ready` comes once, when a page has shown that everything that was there is passed on.
 */
export class StreamMerge<R extends MergeRecord> {
  readonly #options: MergeOptions;
  #mode: "reading" | "live" = "reading";
  #position = 0;
  /** The message at the position: as long as it is where it was, the stream is the one that we know. */
  #anchor: R | undefined;
  /** The next page is to prove it; the page that is being read does. */
  #checkNext = false;
  #checking = false;
  /** Subject of an anchor that is no longer where it was. */
  #suspect: string | undefined;
  #paging = false;
  #held: R[] = [];
  #heldBytes = 0;
  #overflowed = false;
  #ready = false;
  #ends = 0;
  /** Newest live message of each subject beyond the position; of use only where a part is followed. */
  readonly #ahead = new Map<string, number>();

  constructor(options: MergeOptions) {
    this.#options = options;
  }

  get mode(): "reading" | "live" {
    return this.#mode;
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Leads back to reading: live messages may have been lost, or cannot be taken. */
  interrupt(): void {
    this.#mode = "reading";
  }

  /** {@link interrupt}, and the next page also proves that the stream is still the one that we know. */
  recheck(): void {
    this.interrupt();
    this.#checkNext = this.#anchor !== undefined;
  }

  /** The sequence from which the next page is to be read; live messages are held from now on. */
  beginPage(): number {
    this.#paging = true;
    this.#held = [];
    this.#heldBytes = 0;
    this.#overflowed = false;
    this.#checking = this.#checkNext;
    this.#checkNext = false;
    if (this.#checking) this.#suspect = undefined;
    return this.#checking ? this.#position : this.#position + 1;
  }

  endPage(page: Pick<Page, "complete"> & { readonly records: readonly R[] }): PageOutcome<R> {
    this.#paging = false;
    if (this.#checking) {
      const found = page.records[0];
      const anchor = this.#anchor;
      if (anchor !== undefined && !isSame(found, anchor)) {
        if (found?.sequence === anchor.sequence) return { items: [], replaced: true };
        // Gone because something newer took its place, or for a bad reason: the pages to come tell.
        if (!this.#options.ages && !anchor.expires) this.#suspect = anchor.subject;
      }
    }
    const fresh = page.records.filter(({ sequence }) => sequence > this.#position);
    if (fresh.some(({ subject }) => subject === this.#suspect)) this.#suspect = undefined;
    if (page.complete && this.#suspect !== undefined) return { items: [], replaced: true };
    this.#advance(fresh.at(-1));
    const unknown = fresh.filter(({ subject, sequence }) => sequence > (this.#ahead.get(subject) ?? 0));
    return { items: page.complete ? [...unknown, ...this.#atEnd(fresh.length)] : unknown, replaced: false };
  }

  /** Whether a live message is to be passed on now. */
  live(record: R): boolean {
    if (this.#mode === "reading") {
      this.#hold(record);
      return false;
    }
    if (record.sequence <= Math.max(this.#position, this.#ahead.get(record.subject) ?? 0)) {
      // Said again, or said by a stream that has begun anew.
      this.recheck();
      return false;
    }
    if (!this.#follows(record) || this.#ahead.size >= maxAhead) {
      this.interrupt();
      return false;
    }
    if (this.#options.contiguous) this.#advance(record);
    else this.#ahead.set(record.subject, record.sequence);
    return true;
  }

  /** What the end of the stream leads to: `ready`, or the turn to live messages. */
  #atEnd(fresh: number): readonly Merged<R>[] {
    this.#ends += 1;
    for (const [subject, sequence] of this.#ahead)
      if (sequence <= this.#position) this.#ahead.delete(subject);
    const items: Merged<R>[] = [];
    if (!this.#ready) {
      if (fresh > 0 && this.#ends < enoughEnds) return items;
      this.#ready = true;
      items.push("ready");
    }
    if (this.#overflowed || this.#checkNext) return items;
    const held = this.#held;
    this.#held = [];
    this.#mode = "live";
    for (const record of held) {
      if (
        record.sequence > Math.max(this.#position, this.#ahead.get(record.subject) ?? 0) &&
        this.live(record)
      )
        items.push(record);
    }
    return items;
  }

  #hold(record: R): void {
    if (!this.#paging || this.#overflowed) return;
    this.#held.push(record);
    this.#heldBytes += record.bytes;
    this.#overflowed = this.#held.length > maxHeld || this.#heldBytes > maxHeldBytes;
    if (this.#overflowed) this.#held = [];
  }

  #follows({ sequence, subject, previous }: R): boolean {
    if (this.#options.contiguous) return sequence === this.#position + 1;
    return previous === undefined || previous <= this.#position || this.#ahead.get(subject) === previous;
  }

  #advance(last: R | undefined): void {
    if (last === undefined) return;
    this.#position = last.sequence;
    this.#anchor = last;
  }
}

function isSame(found: MergeRecord | undefined, anchor: MergeRecord): boolean {
  return (
    found !== undefined &&
    found.sequence === anchor.sequence &&
    found.subject === anchor.subject &&
    found.timeText === anchor.timeText
  );
}
