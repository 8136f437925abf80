import { type CallItem, CancelledError, TimeoutError, type TrellisError } from "@trellis/protocol";
import { err, type Result } from "@trellis/result";
import type { ProviderRoute } from "../connect/routes.ts";
import { onAbort } from "../lifecycle/on-abort.ts";
import { WheelEntry } from "../lifecycle/timer-wheel.ts";
import type { CallLane } from "./call-lane.ts";
import type { Callable } from "./callable.ts";
import { sameBytes } from "./request-ids.ts";
import type { SentFrame } from "./sent-frame.ts";

export type CallResult = Result<unknown, TrellisError>;

/** Who looks after pending calls: hears of the end of each, exactly once. */
export interface PendingCallOwner {
  onSettled(call: PendingCall): void;
  /** The caller no longer wants the answer of a call that is with a provider. */
  onAbandoned(call: PendingCall): void;
}

export interface PendingCallInput {
  readonly owner: PendingCallOwner;
  readonly lane: CallLane;
  readonly sequence: number;
  readonly requestId: Uint8Array;
  readonly payload: string;
  readonly trace: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly origin: Uint8Array | undefined;
  readonly timeoutMs: number;
  /** Monotonic ms. */
  readonly startedAt: number;
  readonly resolve: (result: CallResult) => void;
  /** Hears under which route each frame of the call goes out. */
  readonly onRoute: ((route: ProviderRoute) => void) | undefined;
}

/**
 * A call between its beginning and its one end. It waits in its lane (`frame` is undefined), then it is out
 * with a frame; a frame that came to nothing puts it back into the lane. It is its own record in the frame.
 */
export class PendingCall extends WheelEntry implements CallItem {
  readonly lane: CallLane;
  readonly sequence: number;
  readonly requestId: Uint8Array;
  readonly payload: string;
  readonly trace: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly origin: Uint8Array | undefined;
  readonly startedAt: number;
  readonly timeoutMs: number;
  readonly onRoute: ((route: ProviderRoute) => void) | undefined;
  /** What it takes in a frame. */
  bytes = 0;
  /** What the frame says that is left; set when it is sent. */
  remainingMs = 0;
  frame: SentFrame | undefined = undefined;
  /** The provider connection that has it, once a receipt told. */
  provider: string | undefined = undefined;
  /** Monotonic ms of the last sign of life of this call. */
  heardAt: number;
  /** A provider turned its frame away unauthenticated; a second time ends it. */
  refused = false;
  /** Monotonic ms at which its provider was last asked for a sign of life; 0 when there is none owed. */
  askedAt = 0;
  /** Nobody listened where its provider was asked. */
  absent = false;
  /** Monotonic ms at which its provider counts as lost, unless it is heard of before. */
  giveUpAt = Number.POSITIVE_INFINITY;
  attempts = 0;
  readonly #owner: PendingCallOwner;
  readonly #resolve: (result: CallResult) => void;
  #unlisten: (() => void) | undefined = undefined;
  #settled = false;

  constructor(input: PendingCallInput) {
    super();
    this.lane = input.lane;
    this.sequence = input.sequence;
    this.requestId = input.requestId;
    this.payload = input.payload;
    this.trace = input.trace;
    this.tracestate = input.tracestate;
    this.origin = input.origin;
    this.startedAt = input.startedAt;
    this.heardAt = input.startedAt;
    this.timeoutMs = input.timeoutMs;
    this.onRoute = input.onRoute;
    this.#owner = input.owner;
    this.#resolve = input.resolve;
  }

  get action(): Callable {
    return this.lane.action;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Lets signals cancel the call. Most calls have none, and pay nothing. */
  listenTo(...signals: readonly (AbortSignal | undefined)[]): void {
    const cancel = (reason: unknown) => this.cancel(reason);
    const stops = signals.map((signal) => signal && onAbort(signal, cancel));
    this.#unlisten = () => {
      for (const stop of stops) stop?.();
    };
  }

  /** A sign of life of this call, or its being sent. */
  heard(now: number): void {
    this.heardAt = now;
    this.askedAt = 0;
    this.absent = false;
    this.giveUpAt = Number.POSITIVE_INFINITY;
  }

  /** A sign of life is owed. */
  get asked(): boolean {
    return this.askedAt > 0;
  }

  /** Time in which this process could not have heard anything does not count. */
  excuse(ms: number): void {
    this.heardAt += ms;
    this.giveUpAt += ms;
  }

  /** True for the id of this very call, random part included. */
  isFor(requestId: Uint8Array): boolean {
    return sameBytes(this.requestId, requestId);
  }

  /** Milliseconds until its deadline. */
  left(now: number): number {
    return this.startedAt + this.timeoutMs - now;
  }

  /** Ends the call; later ends are ignored. */
  settle(result: CallResult): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#unlisten?.();
    this.#owner.onSettled(this);
    this.#resolve(result);
  }

  fail(error: TrellisError): void {
    this.settle(err(error));
  }

  cancel(cause: unknown): void {
    this.#abandon(new CancelledError({ reason: "aborted", cause }));
  }

  override expire(): void {
    const timeoutMs = Math.round(this.timeoutMs);
    const message = `${this.action.name} gave no answer within ${timeoutMs} ms`;
    this.#abandon(new TimeoutError({ timeoutMs, message }));
  }

  #abandon(error: TrellisError): void {
    if (this.#settled) return;
    if (this.frame !== undefined) this.#owner.onAbandoned(this);
    this.fail(error);
  }
}
