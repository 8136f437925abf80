import { MAX_FRAME_CALLS } from "@trellis/protocol";
import type { Session } from "../connect/session.ts";
import { afterTick } from "../lifecycle/tick.ts";
import { type Callable, surfaceOf } from "./callable.ts";
import type { PendingCall } from "./pending-call.ts";

/** Sends calls of one lane as one frame; false when it cannot be sent now and the calls are to wait. */
export type SendFrame = (lane: CallLane, calls: PendingCall[]) => boolean;

/** Frames are not cut smaller than this, calls. */
const smallFrame = 8;
const framesUnderWay = 2;
/** Calls that ended while they waited stay in the queue until there are so many. */
const endedKept = 256;
/** Bytes that one frame gathers at the most; a bigger call travels alone. */
const maxGatheredBytes = 64 * 1024;

/** What a lane needs of its client. */
export interface LaneSender {
  readonly send: SendFrame;
  /** Bytes of calls that the broker takes in one frame at the moment. */
  room(): number;
}

/**
 * The calls of one action on their way out. While nothing of the lane is in flight, a call goes out with those
 * of the same turn; under load the calls of one tick share frames. `inFlight` counts calls that are with a provider.
 */
export class CallLane {
  readonly action: Callable;
  inFlight = 0;
  /** Somebody watches the broker's refusals for this lane. */
  watched = false;
  readonly #sender: LaneSender;
  readonly #frameLimit: number;
  #queue: PendingCall[] = [];
  #ended = 0;
  #scheduled = false;
  #grantedBy: Session | undefined;
  #granted = false;

  constructor(action: Callable, sender: LaneSender) {
    this.action = action;
    this.#sender = sender;
    this.#frameLimit = action.coalesce ? MAX_FRAME_CALLS : 1;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether a session's grants include the action; looked up once a session. */
  grantedBy(session: Session): boolean {
    if (this.#grantedBy !== session) {
      const { kind, api, name } = this.action;
      const surface = surfaceOf(kind);
      this.#grantedBy = session;
      this.#granted = session.grants.calls.some((call) => call.api === api && call[surface].includes(name));
    }
    return this.#granted;
  }

  submit(call: PendingCall): void {
    this.#queue.push(call);
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.inFlight === 0) queueMicrotask(this.#onTick);
    else afterTick(this.#onTick);
  }

  /** A call ended while it waited. Now and then such calls are let go of: an outage may be long. */
  onEndedWaiting(): void {
    this.#ended += 1;
    if (this.#ended < endedKept || this.#ended * 2 < this.#queue.length) return;
    this.#queue = this.#queue.filter((call) => !call.settled);
    this.#ended = 0;
  }

  /** Sends what waits, as far as the socket lets it. */
  flush(): void {
    while (this.#queue.length > 0) {
      const calls = this.#gather();
      if (calls.length === 0) return;
      if (this.#sender.send(this, calls)) continue;
      this.#queue = calls.concat(this.#queue);
      return;
    }
  }

  readonly #onTick = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  /**
   * No more than a share of what is under way: caller, broker and provider then work at the same time, each on
   * a frame of its own, where one big frame would have them wait for each other.
   */
  #limit(): number {
    const share = Math.ceil((this.inFlight + this.#queue.length) / framesUnderWay);
    return Math.min(this.#frameLimit, Math.max(smallFrame, share));
  }

  #gather(): PendingCall[] {
    const calls: PendingCall[] = [];
    const limit = this.#limit();
    const room = Math.min(maxGatheredBytes, this.#sender.room());
    let bytes = 0;
    let taken = 0;
    for (const call of this.#queue) {
      if (!call.settled) {
        const full = calls.length === limit || bytes + call.bytes > room;
        if (full && calls.length > 0) break;
        calls.push(call);
        bytes += call.bytes;
      }
      taken += 1;
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    return calls;
  }
}
