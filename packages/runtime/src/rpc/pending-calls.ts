import { BusyError, type TrellisError } from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { systemTimers } from "../lifecycle/timers.ts";
import type { PendingCall, PendingCallOwner } from "./pending-call.ts";
import type { SentFrame } from "./sent-frame.ts";

/** Calls that may wait or be out at once; more is a bug or an attack, and memory stays bounded. */
const maxPending = 100_000;

/** All calls of a connection that have begun and not ended, and their moves between lane and frame. */
export class PendingCalls implements PendingCallOwner {
  readonly #link: Link;
  readonly #calls = new Map<number, PendingCall>();
  /** Tells the provider that a call is no longer wanted. */
  onAbandoned: (call: PendingCall) => void = () => {};

  constructor(link: Link) {
    this.#link = link;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Why no further call may begin. */
  full(): BusyError | undefined {
    if (this.#calls.size < maxPending) return undefined;
    return new BusyError({ retryAfterMs: 1_000, message: "Too many calls are pending in this process" });
  }

  get(sequence: number): PendingCall | undefined {
    return this.#calls.get(sequence);
  }

  /** A copy, so that calls may end while it is walked. */
  all(): readonly PendingCall[] {
    return [...this.#calls.values()];
  }

  add(call: PendingCall): void {
    this.#calls.set(call.sequence, call);
    this.#link.wheel.schedule(call, call.timeoutMs);
  }

  onSettled(call: PendingCall): void {
    this.#calls.delete(call.sequence);
    this.#link.wheel.cancel(call);
    if (call.frame === undefined) call.lane.onEndedWaiting();
    this.takeBack(call);
  }

  failAll(error: () => TrellisError): void {
    for (const call of this.all()) call.fail(error());
  }

  /** The calls of a frame that still wait for an answer to this very frame. */
  openOf(frame: SentFrame): readonly PendingCall[] {
    return frame.calls.filter((call) => !call.settled && call.frame === frame);
  }

  /** Parts a call from its frame; answers to that frame no longer concern it. */
  takeBack(call: PendingCall): void {
    const { frame } = call;
    if (frame === undefined) return;
    call.frame = undefined;
    call.provider = undefined;
    call.lane.inFlight -= 1;
    frame.open -= 1;
    if (frame.open === 0) this.#link.replies.release(frame.reply);
  }

  resubmit(call: PendingCall): void {
    this.takeBack(call);
    call.lane.submit(call);
  }

  resubmitAfter(call: PendingCall, delayMs: number): void {
    this.takeBack(call);
    const again = () => {
      if (!call.settled) call.lane.submit(call);
    };
    // In the background: whoever waits for the call has the socket, and who has closed it waits for nothing.
    systemTimers.set(again, delayMs, { background: true });
  }
}
