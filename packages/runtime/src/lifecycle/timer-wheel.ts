import { type Clock, systemClock } from "./clock.ts";
import { systemTimers, type Timer, type Timers } from "./timers.ts";

/**
 * What a `TimerWheel` holds. Extend it with the record that needs the timer: the links live in the record itself,
 * so that scheduling allocates nothing. An entry is in at most one wheel.
 */
export abstract class WheelEntry {
  /** Fields of the wheel; nobody else touches them. */
  wheelOwner: TimerWheel | undefined = undefined;
  wheelNext: WheelEntry | undefined = undefined;
  wheelPrevious: WheelEntry | undefined = undefined;
  wheelDue = 0;

  /** Called once, when the time is up, after the entry has left the wheel. */
  abstract expire(): void;

  get scheduled(): boolean {
    return this.wheelOwner !== undefined;
  }
}

/** Head of a circular list; never expires. */
class Head extends WheelEntry {
  constructor() {
    super();
    this.wheelNext = this;
    this.wheelPrevious = this;
  }

  get empty(): boolean {
    return this.wheelNext === this;
  }

  override expire(): void {}
}

export interface TimerWheelOptions {
  /** Resolution, ms. Default 8. */
  readonly tickMs?: number;
  /** Slots of one revolution. Default 512 (4 s with the default tick); longer delays go round. */
  readonly slots?: number;
  readonly clock?: Clock;
  readonly timers?: Timers;
  /** Hears what `expire` threw. Default: it is thrown again after the other entries have expired. */
  readonly onError?: (error: unknown) => void;
}

/**
 * Deadlines of many calls on one platform timer (a hashed timing wheel, Varghese and Lauck 1987).
 *
 * Invariants:
 * 1. `schedule` and `cancel` are O(1) and allocate nothing; a cancelled or expired entry is not referenced any more.
 * 2. An entry never expires early, and at most one tick late plus what the event loop was late. After a stall
 *    everything that is overdue expires at once.
 * 3. There is at most one platform timer. It never keeps the process alive, sleeps until the next slot in use, and
 *    goes away when it finds the wheel empty. It is left alone when an entry is cancelled: calls come and go far
 *    more often than it fires.
 * 4. `expire` may schedule and cancel anything, itself included, and stop the wheel.
 */
export class TimerWheel {
  readonly #tickMs: number;
  readonly #slots: readonly Head[];
  readonly #due = new Head();
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #onError: ((error: unknown) => void) | undefined;
  #timer: Timer | undefined;
  /** The tick that the timer will wake for; meaningful while there is a timer. */
  #wakeTick = 0;
  /** All ticks up to this one have been dealt with. */
  #doneTick: number;
  #size = 0;
  #stopped = false;
  /** While entries expire nobody arms the timer: `#wake` does, for all of them, at its end. */
  #waking = false;

  constructor(options: TimerWheelOptions = {}) {
    const { tickMs = 8, slots = 512, clock = systemClock, timers = systemTimers } = options;
    if (!(tickMs > 0) || !Number.isInteger(slots) || slots < 1) {
      throw new RangeError("a timer wheel needs a positive tick and a whole, positive number of slots");
    }
    this.#tickMs = tickMs;
    this.#slots = Array.from({ length: slots }, () => new Head());
    this.#clock = clock;
    this.#timers = timers;
    this.#onError = options.onError;
    this.#doneTick = this.#currentTick();
  }

  /** Number of entries that wait. */
  get size(): number {
    return this.#size;
  }

  /**
   * Lets `entry` expire in `delayMs`; an entry that waits already is moved. `Infinity` means never: the entry is
   * only taken out. Throws after `stop`: a deadline that silently never comes would be a call that hangs.
   */
  schedule(entry: WheelEntry, delayMs: number): void {
    if (this.#stopped) throw new Error("the timer wheel is stopped");
    if (Number.isNaN(delayMs)) throw new RangeError("a delay must be a number of milliseconds");
    if (entry.wheelOwner !== undefined) entry.wheelOwner.cancel(entry);
    if (delayMs === Number.POSITIVE_INFINITY) return;
    const now = this.#clock.monotonic();
    // With no timer nobody advanced the wheel: nothing waits in the ticks that went by.
    if (this.#timer === undefined && !this.#waking) this.#doneTick = Math.floor(now / this.#tickMs);
    const due = Math.max(this.#doneTick + 1, Math.ceil((now + Math.max(0, delayMs)) / this.#tickMs));
    entry.wheelDue = due;
    entry.wheelOwner = this;
    append(this.#slot(due), entry);
    this.#size += 1;
    if (this.#waking) return;
    if (this.#timer === undefined) this.#arm(due, now);
    else if (due < this.#wakeTick) {
      this.#timer.clear();
      this.#arm(due, now);
    }
  }

  /** Takes `entry` out. No effect when it does not wait here. */
  cancel(entry: WheelEntry): void {
    if (entry.wheelOwner !== this) return;
    entry.wheelOwner = undefined;
    unlink(entry);
    this.#size -= 1;
  }

  /** Drops every entry without expiring it, and the timer. Idempotent. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.clear();
    this.#timer = undefined;
    for (const slot of this.#slots) this.#drop(slot);
    this.#drop(this.#due);
  }

  #drop(head: Head): void {
    for (let entry = first(head); entry !== undefined; entry = first(head)) this.cancel(entry);
  }

  #currentTick(): number {
    return Math.floor(this.#clock.monotonic() / this.#tickMs);
  }

  #slot(tick: number): Head {
    const slot = this.#slots[tick % this.#slots.length];
    if (slot === undefined) throw new Error(`no slot for tick ${tick}: the clock ran backwards`);
    return slot;
  }

  #arm(tick: number, now: number): void {
    this.#wakeTick = tick;
    this.#timer = this.#timers.set(() => this.#wake(), tick * this.#tickMs - now, { background: true });
  }

  #wake(): void {
    this.#timer = undefined;
    this.#waking = true;
    this.#collect();
    const failed = this.#expireDue();
    this.#waking = false;
    if (this.#size > 0) this.#arm(this.#nextVisit(), this.#clock.monotonic());
    if (failed !== undefined) throw failed.first;
  }

  /** Moves what is due out of the slots that came by, before any of it runs. */
  #collect(): void {
    const tick = this.#currentTick();
    const from = Math.max(this.#doneTick + 1, tick - this.#slots.length + 1);
    for (let visited = from; visited <= tick; visited += 1) {
      const slot = this.#slot(visited);
      for (let entry = slot.wheelNext; entry !== undefined && entry !== slot; ) {
        const following: WheelEntry | undefined = entry.wheelNext;
        if (entry.wheelDue <= tick) {
          unlink(entry);
          append(this.#due, entry);
        }
        entry = following;
      }
    }
    this.#doneTick = Math.max(this.#doneTick, tick);
  }

  #expireDue(): { first: unknown } | undefined {
    let failed: { first: unknown } | undefined;
    for (let entry = first(this.#due); entry !== undefined; entry = first(this.#due)) {
      this.cancel(entry);
      try {
        entry.expire();
      } catch (error) {
        failed ??= this.#report(error);
      }
    }
    return failed;
  }

  #report(error: unknown): { first: unknown } | undefined {
    if (this.#onError === undefined) return { first: error };
    this.#onError(error);
    return undefined;
  }

  /** The next tick whose slot is in use. Only asked while the wheel holds something. */
  #nextVisit(): number {
    const last = this.#doneTick + this.#slots.length;
    for (let tick = this.#doneTick + 1; tick < last; tick += 1) {
      if (!this.#slot(tick).empty) return tick;
    }
    return last;
  }
}

function append(head: Head, entry: WheelEntry): void {
  const last = head.wheelPrevious ?? head;
  entry.wheelPrevious = last;
  entry.wheelNext = head;
  last.wheelNext = entry;
  head.wheelPrevious = entry;
}

function unlink(entry: WheelEntry): void {
  if (entry.wheelPrevious !== undefined) entry.wheelPrevious.wheelNext = entry.wheelNext;
  if (entry.wheelNext !== undefined) entry.wheelNext.wheelPrevious = entry.wheelPrevious;
  entry.wheelNext = undefined;
  entry.wheelPrevious = undefined;
}

function first(head: Head): WheelEntry | undefined {
  return head.wheelNext === head ? undefined : head.wheelNext;
}
