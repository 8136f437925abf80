import { FEED_TIMING, FEED_WINDOW } from "./feed-window.ts";

/**
 * `take`: the next frame; `ignore`: it came before, or out of turn; `resume`: one is missing, ask for it;
 * `overrun`: the provider sends more than it may.
 */
export type FeedReceiverVerdict = "take" | "ignore" | "resume" | "overrun";

export type FeedReceiverDue = "report" | "ask" | "lost";

/** The totals of a note. */
export interface FeedReport {
  readonly received: number;
  readonly consumed: number;
}

/** Credit goes back in strides of half a window, so that it costs next to nothing. */
const stride = { frames: FEED_WINDOW.frames / 2, bytes: FEED_WINDOW.bytes / 2 };
/** When everything is consumed, already this much is worth a note: the next frame may be a large one. */
const drainedStride = { frames: FEED_WINDOW.frames / 8, bytes: FEED_WINDOW.bytes / 8 };

/**
 * The consumer's side of one session, without its input and output.
 *
 * Invariants:
 * 1. Frames are taken in order, each once; a missing one is asked for.
 * 2. A frame counts as consumed when its last item is in the hands of the application.
 * 3. What waits for the application is never more than the window, whatever the provider does.
 */
export class FeedReceiver {
  #received = 0;
  #consumed = 0;
  #reportedReceived = 0;
  #reportedConsumed = 0;
  /** Items left, and bytes, of each frame that is not consumed. */
  readonly #left: number[] = [];
  readonly #sizes: number[] = [];
  #heldBytes = 0;
  #unreportedBytes = 0;
  #handedSince = false;
  #heardAt: number;
  #askedAt: number;
  #resumedAt = Number.NEGATIVE_INFINITY;

  /** `now`: monotonic ms. */
  constructor(now: number) {
    this.#heardAt = now;
    this.#askedAt = now;
  }

  get received(): number {
    return this.#received;
  }

  get consumed(): number {
    return this.#consumed;
  }

  /** Judges an authentic frame of items. */
  onItems(sequence: number, bytes: number, now: number): FeedReceiverVerdict {
    const verdict = this.#place(sequence, now);
    if (verdict !== "take") return verdict;
    const held = this.#received - this.#consumed;
    const full = held >= FEED_WINDOW.frames || this.#heldBytes + bytes > FEED_WINDOW.bytes;
    return full && held > 0 ? "overrun" : "take";
  }

  /** Judges an authentic end; what is taken is the last. */
  onEnd(sequence: number, now: number): FeedReceiverVerdict {
    return this.#place(sequence, now);
  }

  /** A frame was taken, with so many items. True when a report is due. */
  took(items: number, bytes: number): boolean {
    this.#received += 1;
    this.#left.push(items);
    this.#sizes.push(bytes);
    this.#heldBytes += bytes;
    if (items === 0) this.#settleHead();
    return this.#received - this.#reportedReceived >= stride.frames;
  }

  /** The end was taken: it asks for nothing of the application. */
  tookEnd(): void {
    this.#received += 1;
  }

  /** The application has one item more. True when a report is due. */
  handed(): boolean {
    this.#handedSince = true;
    const left = (this.#left[0] ?? 0) - 1;
    this.#left[0] = left;
    if (left > 0) return false;
    this.#settleHead();
    const frames = this.#consumed - this.#reportedConsumed;
    const { frames: most, bytes } = this.#left.length === 0 ? drainedStride : stride;
    return frames >= most || this.#unreportedBytes >= bytes;
  }

  /** The totals for a note that goes out now. */
  report(): FeedReport {
    this.#reportedReceived = this.#received;
    this.#reportedConsumed = this.#consumed;
    this.#unreportedBytes = 0;
    this.#handedSince = false;
    return { received: this.#received, consumed: this.#consumed };
  }

  /** An authentic sign of life. */
  heard(now: number): void {
    this.#heardAt = now;
  }

  asked(now: number): void {
    this.#askedAt = now;
  }

  due(now: number): FeedReceiverDue | undefined {
    const silence = now - this.#heardAt;
    if (silence >= FEED_TIMING.providerLostMs) return "lost";
    if (silence >= FEED_TIMING.consumerAsksMs && now - this.#askedAt >= FEED_TIMING.challengeMs / 2)
      return "ask";
    return this.#handedSince || this.#received > this.#reportedReceived ? "report" : undefined;
  }

  /** Time in which nothing could have been heard does not count. */
  excuse(ms: number): void {
    this.#heardAt += ms;
    this.#askedAt += ms;
  }

  #place(sequence: number, now: number): FeedReceiverVerdict {
    this.#heardAt = now;
    if (sequence === this.#received + 1) return "take";
    if (sequence <= this.#received || now - this.#resumedAt < FEED_TIMING.resumeMs) return "ignore";
    this.#resumedAt = now;
    return "resume";
  }

  /** Lets go of the frames at the head that have nothing left. */
  #settleHead(): void {
    while (this.#left.length > 0 && (this.#left[0] ?? 0) <= 0) {
      this.#left.shift();
      const bytes = this.#sizes.shift() ?? 0;
      this.#consumed += 1;
      this.#heldBytes -= bytes;
      this.#unreportedBytes += bytes;
    }
  }
}
