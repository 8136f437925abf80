import { MAX_FRAME_CALLS } from "@trellis/protocol";
import { afterTick } from "../lifecycle/tick.ts";
import type { PendingCall } from "./pending-call.ts";

/** Sends calls of one lane as one frame; false when it cannot be sent now and the calls are to wait. */
export type SendFrame = (lane: CallLane, calls: PendingCall[]) => boolean;

/** Payload bytes that one frame gathers; a bigger call travels alone. */
const maxGatheredBytes = 64 * 1024;

/**
 * The calls of one action on their way out. A call goes at once when nothing of the lane is in flight; under
 * load the calls of one tick share a frame. `inFlight` counts calls that are with a provider.
 */
export class CallLane {
  readonly api: string;
  readonly name: string;
  inFlight = 0;
  /** Calls a frame may hold; small while the provider's handlers are slow, so that replicas share evenly. */
  frameLimit: number;
  readonly #send: SendFrame;
  #queue: PendingCall[] = [];
  #scheduled = false;
  #watching = false;

  constructor(input: { api: string; name: string; coalesce: boolean; send: SendFrame }) {
    this.api = input.api;
    this.name = input.name;
    this.#send = input.send;
    this.frameLimit = input.coalesce ? MAX_FRAME_CALLS : 1;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  submit(call: PendingCall): void {
    this.#queue.push(call);
    if (this.inFlight === 0 && this.#queue.length === 1) this.flush();
    else this.#schedule();
  }

  /** Sends what waits, as far as the socket lets it. */
  flush(): void {
    while (this.#queue.length > 0) {
      const calls = this.#gather();
      if (calls.length === 0) return;
      if (this.#send(this, calls)) continue;
      this.#queue = calls.concat(this.#queue);
      return;
    }
  }

  /** True exactly once: whoever asks first watches the broker's refusals for this lane. */
  claimWatch(): boolean {
    if (this.#watching) return false;
    this.#watching = true;
    return true;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTick(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  #gather(): PendingCall[] {
    const calls: PendingCall[] = [];
    let bytes = 0;
    let taken = 0;
    for (const call of this.#queue) {
      if (call.settled) {
        taken += 1;
        continue;
      }
      const tooMuch = calls.length > 0 && bytes + call.bytes > maxGatheredBytes;
      if (calls.length === this.frameLimit || tooMuch) break;
      calls.push(call);
      bytes += call.bytes;
      taken += 1;
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    return calls;
  }
}
