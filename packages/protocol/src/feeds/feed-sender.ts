import type { FeedNote } from "./feed-control.ts";
import { FEED_TIMING, FEED_WINDOW } from "./feed-window.ts";

/**
 * `proving`: opened, the first challenge is out; `open`: the producer runs; `ending`: the last frame is out, the
 * consumer has not got it yet; `over`: nothing is held any more.
 */
export type FeedSenderPhase = "proving" | "open" | "ending" | "over";

/** What a note leads to. */
export interface FeedSenderDecision {
  /** The delivery path is proven: start the producer. True once in the life of a session. */
  readonly start: boolean;
  /** The window has moved. */
  readonly room: boolean;
  /** Frames that got lost: send them again as they are. */
  readonly resend: readonly Uint8Array[];
  /** The consumer wants a sign of life. */
  readonly ask: boolean;
  /** The session is over: the consumer left, or has got the end. True once. */
  readonly over: boolean;
}

/** What time leads to: a challenge, or an end. */
export type FeedSenderDue = "ask" | "unproven" | "lost" | "stalled";

const NOTHING: FeedSenderDecision = { start: false, room: false, resend: [], ask: false, over: false };
const NO_FRAMES: Uint8Array[] = [];

/**
 * The provider's side of one session, without its input and output.
 *
 * Invariants:
 * 1. Never more than the window is out: 64 frames and 1 MiB that are not consumed; a lone frame may be larger.
 * 2. A frame is kept until the consumer has it, and sent again as it is: nothing is lost, and sequence numbers let
 *    nothing be taken twice.
 * 3. The producer starts once, and not before a challenge was answered.
 * 4. The session is over once: notes and time lead to nothing after that.
 */
export class FeedSender {
  #phase: FeedSenderPhase = "proving";
  #sent = 0;
  #received = 0;
  #consumed = 0;
  #outBytes = 0;
  /** Frames after `#received`, and the sizes of those after `#consumed`. Idle sessions share empty ones. */
  #frames = NO_FRAMES;
  #sizes: number[] | undefined;
  #nonce: number;
  #sentWhenAsked = 0;
  #heardAt: number;
  #askedAt: number;
  #blockedAt: number | undefined = undefined;

  /** `nonce`: of the first challenge, which the answer to the open carries. `now`: monotonic ms. */
  constructor(nonce: number, now: number) {
    this.#nonce = nonce;
    this.#heardAt = now;
    this.#askedAt = now;
  }

  get phase(): FeedSenderPhase {
    return this.#phase;
  }

  /** Sequence of the newest frame. */
  get sent(): number {
    return this.#sent;
  }

  /** Frames that the application at the other end has not taken, as far as we know. */
  get unconsumed(): number {
    return this.#sent - this.#consumed;
  }

  get unconsumedBytes(): number {
    return this.#outBytes;
  }

  /** Whether a frame of this size may go now. A no is remembered: it is from now on that the consumer stalls. */
  allows(bytes: number, now: number): boolean {
    if (this.#phase !== "open") return false;
    const { unconsumed } = this;
    const fits = unconsumed < FEED_WINDOW.frames && this.#outBytes + bytes <= FEED_WINDOW.bytes;
    if (fits || unconsumed === 0) return true;
    this.#blockedAt ??= now;
    return false;
  }

  /** Takes a frame that was allowed; its sequence must be `sent + 1`. */
  add(frame: Uint8Array): void {
    this.#keep(frame);
  }

  /** Takes the last frame, which goes whatever the window says. */
  end(frame: Uint8Array): void {
    if (this.#phase !== "open" && this.#phase !== "proving") return;
    this.#keep(frame);
    this.#phase = "ending";
  }

  /** Ends at once: nobody is there to be told. False when it was over already. */
  drop(): boolean {
    if (this.#phase === "over") return false;
    this.#phase = "over";
    this.#frames = NO_FRAMES;
    this.#sizes = undefined;
    this.#outBytes = 0;
    return true;
  }

  /** Takes what the consumer says. Notes that cannot be true are ignored: they concern only its own session. */
  onNote(note: FeedNote, now: number): FeedSenderDecision {
    if (this.#phase === "over" || note.received > this.#sent || note.consumed > note.received) return NOTHING;
    if (note.kind === "close") return { ...NOTHING, over: this.drop() };
    const answered = note.kind === "answer" && note.nonce === this.#nonce;
    if (answered || note.received > this.#received) this.#heardAt = now;
    const start = this.#phase === "proving" && answered;
    if (start) this.#phase = "open";
    const room = this.#advance(note);
    // Said only when something moved: one who reads a frame for longer than the stall is slow, and does not stall.
    if (note.kind === "state" && this.#blockedAt !== undefined) this.#blockedAt = now;
    if (this.#phase === "ending" && this.#received === this.#sent) return { ...NOTHING, over: this.drop() };
    const lost = note.kind === "resume" || (answered && note.received < this.#sentWhenAsked);
    const resend = lost ? this.#frames.slice(Math.max(0, note.received - this.#received)) : NO_FRAMES;
    return { start, room, resend, ask: note.kind === "resume" && resend.length === 0, over: false };
  }

  /** A challenge with this nonce goes out now, behind all frames that were sent so far. */
  asked(nonce: number, now: number): void {
    this.#nonce = nonce;
    this.#askedAt = now;
    this.#sentWhenAsked = this.#sent;
  }

  /** What is due. */
  due(now: number): FeedSenderDue | undefined {
    if (this.#phase === "over") return undefined;
    const silence = now - this.#heardAt;
    if (this.#phase === "proving") return silence >= FEED_TIMING.proofMs ? "unproven" : undefined;
    if (silence >= FEED_TIMING.consumerLostMs) return "lost";
    if (this.#blockedAt !== undefined && now - this.#blockedAt >= FEED_TIMING.stallMs) return "stalled";
    return now - Math.max(this.#heardAt, this.#askedAt) >= FEED_TIMING.challengeMs ? "ask" : undefined;
  }

  /** Time in which nothing could have been heard does not count. */
  excuse(ms: number): void {
    this.#heardAt += ms;
    this.#askedAt += ms;
    if (this.#blockedAt !== undefined) this.#blockedAt += ms;
  }

  #keep(frame: Uint8Array): void {
    this.#sent += 1;
    this.#outBytes += frame.length;
    if (this.#frames === NO_FRAMES) this.#frames = [];
    this.#frames.push(frame);
    this.#sizes ??= [];
    this.#sizes.push(frame.length);
  }

  /** Forgets what has arrived; true when the window moved. */
  #advance({ received, consumed }: FeedNote): boolean {
    if (received > this.#received) {
      this.#frames.splice(0, received - this.#received);
      this.#received = received;
      if (this.#frames.length === 0) this.#frames = NO_FRAMES;
    }
    if (consumed <= this.#consumed) return false;
    for (const size of this.#sizes?.splice(0, consumed - this.#consumed) ?? []) this.#outBytes -= size;
    this.#consumed = consumed;
    if (this.unconsumed === 0) this.#sizes = undefined;
    this.#blockedAt = undefined;
    return true;
  }
}
