import {
  encodeReplyFrame,
  type MacKey,
  type Port,
  REPLY_OVERHEAD,
  RESULT_OVERHEAD,
  type ResultItem,
} from "@trellis/protocol";
import type { Broker } from "../connect/broker.ts";
import { afterTick } from "../lifecycle/tick.ts";
import { encodeReplyTooLarge } from "./encode-answer.ts";

export interface FrameAnswerInput {
  readonly port: Port;
  readonly broker: Broker;
  readonly reply: string;
  readonly epoch: number;
  readonly key: MacKey;
  /** Calls in the frame. */
  readonly calls: number;
  /** The socket is down: the answer is left with its owner. */
  unsent(reply: string, frame: Uint8Array): void;
}

const maxGatheredBytes = 64 * 1024;

/**
 * Gathers the results of one request frame. Results that are ready in the same tick share a reply frame; the
 * last open one takes everything with it at once, so a lone call never waits.
 */
export class FrameAnswer {
  readonly #input: FrameAnswerInput;
  #open: number;
  #ready: ResultItem[] = [];
  #bytes = 0;
  #scheduled = false;

  constructor(input: FrameAnswerInput) {
    this.#input = input;
    this.#open = input.calls;
  }

  /** Adds the one result of a call. */
  add(item: ResultItem): void {
    this.#open -= 1;
    this.#push(this.#fitting(item));
    if (this.#open === 0) this.flush();
    else this.#later();
  }

  /** Adds a receipt: the call stays open. */
  note(item: ResultItem): void {
    this.#push(item);
    this.#later();
  }

  flush(): void {
    const results = this.#ready;
    if (results.length === 0) return;
    this.#ready = [];
    this.#bytes = 0;
    const { port, broker, reply, epoch, key } = this.#input;
    const frame = encodeReplyFrame(port, { epoch, results, reply, key });
    if (!broker.publish(reply, frame)) this.#input.unsent(reply, frame);
  }

  #push(item: ResultItem): void {
    const size = RESULT_OVERHEAD + this.#input.port.utf8.length(item.payload);
    const room = Math.min(maxGatheredBytes, this.#input.broker.maxPayload - REPLY_OVERHEAD);
    if (this.#ready.length === 64 || (this.#ready.length > 0 && this.#bytes + size > room)) this.flush();
    this.#ready.push(item);
    this.#bytes += size;
  }

  /** A result over the broker's limit is answered at once by an error that says so. */
  #fitting(item: ResultItem): ResultItem {
    const { port, broker } = this.#input;
    // The longest UTF-8 of a UTF-16 unit is 3 bytes: most results need no exact count.
    const room = broker.maxPayload - REPLY_OVERHEAD - RESULT_OVERHEAD;
    if (item.payload.length * 3 <= room || port.utf8.length(item.payload) <= room) return item;
    return { requestId: item.requestId, ...encodeReplyTooLarge(port.utf8.length(item.payload), room) };
  }

  #later(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTick(() => {
      this.#scheduled = false;
      this.flush();
    });
  }
}
