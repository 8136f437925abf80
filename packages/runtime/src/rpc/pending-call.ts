import type { RpcAction } from "@trellis/contract";
import { type CallItem, CancelledError, TimeoutError, type TrellisError } from "@trellis/protocol";
import { err, type Result } from "@trellis/result";
import { WheelEntry } from "../lifecycle/timer-wheel.ts";
import type { CallLane } from "./call-lane.ts";
import { sameBytes } from "./request-ids.ts";
import type { SentFrame } from "./sent-frame.ts";

export type CallResult = Result<unknown, TrellisError>;

/** Who looks after pending calls: hears of the end of each, exactly once. */
export interface PendingCallOwner {
  onSettled(call: PendingCall): void;
  /** The caller no longer wants the answer of a call that is with a provider. */
  onAbandoned(call: PendingCall, provider: string | undefined): void;
}

export interface PendingCallInput {
  readonly owner: PendingCallOwner;
  readonly plan: RpcAction;
  readonly lane: CallLane;
  readonly sequence: number;
  readonly item: Omit<CallItem, "remainingMs">;
  readonly bytes: number;
  readonly timeoutMs: number;
  /** Monotonic ms. */
  readonly startedAt: number;
  /** Aborting any of them cancels the call. */
  readonly signals: readonly AbortSignal[];
  resolve(result: CallResult): void;
}

/**
 * A call between its beginning and its one end. It waits in its lane (`frame` is undefined), then it is out
 * with a frame; a frame that came to nothing puts it back into the lane.
 */
export class PendingCall extends WheelEntry {
  readonly plan: RpcAction;
  readonly lane: CallLane;
  readonly sequence: number;
  readonly item: Omit<CallItem, "remainingMs">;
  /** Length of the payload in UTF-8. */
  readonly bytes: number;
  readonly startedAt: number;
  readonly timeoutMs: number;
  frame: SentFrame | undefined = undefined;
  /** The provider connection that has it, once a receipt told. */
  provider: string | undefined = undefined;
  /** Monotonic ms of the last sign of life of this call. */
  heardAt: number;
  /** A provider turned its frame away unauthenticated; a second time ends it. */
  refused = false;
  pinged = false;
  attempts = 0;
  readonly #owner: PendingCallOwner;
  readonly #resolve: (result: CallResult) => void;
  readonly #signals: readonly AbortSignal[];
  #settled = false;

  constructor(input: PendingCallInput) {
    super();
    this.plan = input.plan;
    this.lane = input.lane;
    this.sequence = input.sequence;
    this.item = input.item;
    this.bytes = input.bytes;
    this.startedAt = input.startedAt;
    this.heardAt = input.startedAt;
    this.timeoutMs = input.timeoutMs;
    this.#owner = input.owner;
    this.#resolve = input.resolve;
    this.#signals = input.signals;
    for (const signal of this.#signals) signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** True for the id of this very call, random part included. */
  isFor(requestId: Uint8Array): boolean {
    return sameBytes(this.item.requestId, requestId);
  }

  remainingMs(now: number): number {
    return this.startedAt + this.timeoutMs - now;
  }

  /** Ends the call; later ends are ignored. */
  settle(result: CallResult): void {
    if (this.#settled) return;
    this.#settled = true;
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#onAbort);
    this.#owner.onSettled(this);
    this.#resolve(result);
  }

  fail(error: TrellisError): void {
    this.settle(err(error));
  }

  override expire(): void {
    this.#abandon(timedOut(this));
  }

  readonly #onAbort = (): void => {
    const cause = this.#signals.find((signal) => signal.aborted)?.reason;
    this.#abandon(new CancelledError({ reason: "aborted", cause }));
  };

  #abandon(error: TrellisError): void {
    if (this.#settled) return;
    if (this.frame !== undefined) this.#owner.onAbandoned(this, this.provider);
    this.fail(error);
  }
}

function timedOut({ plan, timeoutMs }: PendingCall): TimeoutError {
  const rounded = Math.round(timeoutMs);
  return new TimeoutError({
    timeoutMs: rounded,
    message: `${plan.name} gave no answer within ${rounded} ms`,
  });
}
