import {
  CancelledError,
  type DecodedCall,
  encodeReceipt,
  RESULT_STATUS,
  type ResultItem,
  TimeoutError,
  toHex,
  UnavailableError,
} from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import { LazySignal } from "../lifecycle/signals.ts";
import { type TimerWheel, WheelEntry } from "../lifecycle/timer-wheel.ts";
import type { CallCause, CallOrigin } from "./call-origin.ts";
import type { Callable } from "./callable.ts";
import { encodeFailure } from "./encode-answer.ts";
import type { FrameAnswer } from "./frame-answer.ts";

/** Who counts open calls. */
export interface OpenCallOwner {
  readonly wheel: TimerWheel;
  /** The handler has returned. */
  onReturned(call: OpenCall): void;
  /** The handler ignores its aborted signal; its slot is given to others. */
  onZombie(call: OpenCall): void;
}

export interface OpenCallInput {
  readonly owner: OpenCallOwner;
  readonly action: Callable;
  readonly session: CallerSession;
  readonly epoch: CallerEpoch;
  readonly answer: FrameAnswer;
  readonly call: DecodedCall;
  readonly bytes: number;
  readonly deadline: Deadline;
  /** Monotonic ms of its admission. */
  readonly now: number;
}

/** How long a handler may go on after its signal was aborted by the deadline before it counts as a zombie. */
const graceMs = 5_000;

/**
 * A call from its admission to the return of its handler.
 *
 * It is *answered* once (by the handler's result, or by its deadline) and *returns* once; only the return frees
 * its slot, unless it outlives the deadline by the grace: then it is a zombie.
 */
export class OpenCall extends WheelEntry implements CallOrigin {
  readonly action: Callable;
  readonly session: CallerSession;
  /** The keys that its frame came under. */
  readonly epoch: CallerEpoch;
  readonly id: Uint8Array;
  readonly bytes: number;
  readonly deadline: Deadline;
  readonly originId: Uint8Array;
  /** The trace that this call belongs to; the server's span takes its place once there is one. */
  traceBytes: Uint8Array | undefined;
  readonly tracestate: string | undefined;
  readonly startedAt: number;
  receipted = false;
  zombie = false;
  readonly #owner: OpenCallOwner;
  readonly #answer: FrameAnswer;
  readonly #abort = new LazySignal();
  #answered = false;
  #expired = false;
  #stopped = false;

  constructor(input: OpenCallInput) {
    super();
    this.#owner = input.owner;
    this.action = input.action;
    this.session = input.session;
    this.epoch = input.epoch;
    this.#answer = input.answer;
    // The frame's bytes belong to the broker client; what outlives this tick is copied.
    this.id = input.call.requestId.slice();
    this.originId = input.call.origin?.slice() ?? this.id;
    this.traceBytes = input.call.trace?.slice();
    this.tracestate = input.call.tracestate;
    this.bytes = input.bytes;
    this.deadline = input.deadline;
    this.startedAt = input.now;
  }

  get cause(): CallCause {
    return { kind: "rpc", name: this.action.name, id: toHex(this.originId) };
  }

  get answered(): boolean {
    return this.#answered;
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  get abortedBy(): AbortSignal | undefined {
    return this.#abort.aborted ? this.#abort.signal : undefined;
  }

  get aborted(): boolean {
    return this.#abort.aborted;
  }

  /** The service ends before the call did: what the handler makes of that is not the caller's affair. */
  get stopped(): boolean {
    return this.#stopped;
  }

  abort(reason: string): void {
    this.#abort.abort(new CancelledError({ reason }));
  }

  /** Aborts because the service stops. */
  stop(): void {
    if (this.aborted) return;
    this.#stopped = true;
    this.abort("stopped");
  }

  /** The service is gone before the handler returned. */
  leave(): void {
    if (this.#stopped) this.reply(encodeFailure(stoppedUnder(this)));
  }

  /** Sends the one answer; what comes later is dropped. */
  reply(item: Omit<ResultItem, "requestId">): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#answer.add({ requestId: this.id, ...item });
  }

  /** Tells the caller which connection has its call. */
  receipt(connection: string): void {
    if (this.#answered || this.receipted) return;
    this.receipted = true;
    this.#answer.note({
      requestId: this.id,
      status: RESULT_STATUS.receipt,
      payload: encodeReceipt({ connection }),
    });
  }

  override expire(): void {
    if (this.#expired) {
      this.zombie = true;
      return this.#owner.onZombie(this);
    }
    this.#expired = true;
    this.#abort.abort(new TimeoutError());
    this.reply(encodeFailure(new TimeoutError()));
    this.#owner.wheel.schedule(this, graceMs);
  }
}

/** The answer to a call that a stop cut short: the caller may try another instance, if it may run twice. */
export function stoppedUnder({ action }: OpenCall): UnavailableError {
  return new UnavailableError({
    reason: "provider_lost",
    message: `The instance that was handling ${action.name} has stopped; the call may have been carried out in part`,
  });
}
