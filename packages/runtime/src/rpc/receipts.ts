import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { OpenCall } from "./open-call.ts";

/** A call that is still open after this long gets a receipt. */
const receiptAfterMs = 5;

/**
 * Sends receipts for calls that take longer than a moment: from then on the caller knows where to cancel and
 * whose loss concerns it. A queue in order of arrival and one timer, so that quick calls pay next to nothing.
 */
export class Receipts {
  readonly #connection: string;
  readonly #now: () => number;
  #queue: { call: OpenCall; at: number }[] = [];
  #timer: Timer | undefined;

  constructor(connection: string, now: () => number) {
    this.#connection = connection;
    this.#now = now;
  }

  watch(call: OpenCall): void {
    this.#queue.push({ call, at: this.#now() });
    this.#timer ??= systemTimers.set(() => this.#send(), receiptAfterMs, { background: true });
  }

  stop(): void {
    this.#timer?.clear();
    this.#queue = [];
  }

  #send(): void {
    const due = this.#now() - receiptAfterMs + 0.5;
    let taken = 0;
    for (const { call, at } of this.#queue) {
      if (at > due && !call.answered) break;
      taken += 1;
      call.receipt(this.#connection);
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    const next = this.#queue[0];
    this.#timer =
      next === undefined
        ? undefined
        : systemTimers.set(() => this.#send(), Math.max(1, next.at - due), { background: true });
  }
}
