import type { Msg } from "@nats-io/nats-core";
import { TransportError } from "@trellis/protocol";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { Broker } from "./broker.ts";
import { connectionDown, type Inbox, isNoResponders } from "./inbox.ts";

/** One stored message as a direct get returns it. */
export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  readonly data: Uint8Array;
}

export interface BatchRequest {
  /** First stream sequence of interest. */
  readonly seq: number;
  readonly batch: number;
  readonly nextBySubject: string;
}

export interface BatchAnswer {
  readonly messages: readonly StoredMessage[];
  /** True when the stream holds nothing further that matches. */
  readonly complete: boolean;
}

const empty = new Uint8Array(0);
const timeoutMs = 3_000;

/**
 * Reads stored messages by JetStream direct gets (ADR-31) over our own inbox: no stream information, no
 * consumer, one round trip.
 */
export class DirectGet {
  readonly #broker: Broker;
  readonly #inbox: Inbox;

  constructor(broker: Broker, inbox: Inbox) {
    this.#broker = broker;
    this.#inbox = inbox;
  }

  /** The last message of the subject that `subject` asks for; `undefined` when there is none. */
  async last(subject: string): Promise<StoredMessage | undefined> {
    const { messages } = await this.#request(
      subject,
      empty,
      (message) => message.headers?.code === 0 || !message.headers?.code,
    );
    return messages[0];
  }

  /** Up to `batch` messages from `seq` on, in order of the stream. */
  async batch(subject: string, request: BatchRequest): Promise<BatchAnswer> {
    const body = JSON.stringify({
      seq: request.seq,
      batch: request.batch,
      next_by_subj: request.nextBySubject,
    });
    return this.#request(subject, new TextEncoder().encode(body), () => false);
  }

  #request(subject: string, body: Uint8Array, isLast: (message: Msg) => boolean): Promise<BatchAnswer> {
    return new Promise((resolve, reject) => {
      const messages: StoredMessage[] = [];
      let timer: Timer | undefined;
      const end = (settle: () => void) => {
        timer?.clear();
        this.#inbox.release(reply);
        settle();
      };
      const reply = this.#inbox.open({
        onReply: (message) => {
          if (isNoResponders(message)) return end(() => reject(noStore()));
          const code = message.headers?.code ?? 0;
          // 204 ends a batch, 404 says that nothing matches; anything else of the kind is a refusal.
          if (code === 204) return end(() => resolve({ messages, complete: pendingOf(message) === 0 }));
          if (code === 404) return end(() => resolve({ messages, complete: true }));
          if (code >= 400) return end(() => reject(refused(code)));
          messages.push(stored(message));
          if (isLast(message)) end(() => resolve({ messages, complete: true }));
        },
      });
      timer = systemTimers.set(() => end(() => reject(noStore())), timeoutMs, { background: true });
      if (!this.#broker.publish(subject, body, reply)) end(() => reject(connectionDown()));
    });
  }
}

function stored(message: Msg): StoredMessage {
  return {
    subject: message.headers?.get("Nats-Subject") ?? "",
    sequence: Number(message.headers?.get("Nats-Sequence") ?? 0),
    data: message.data,
  };
}

function pendingOf(message: Msg): number {
  return Number(message.headers?.get("Nats-Num-Pending") ?? 0);
}

function noStore(): TransportError {
  return new TransportError({
    code: "trellis.connection.store_unreachable",
    message: "The platform's authorization store did not answer.",
    hint: "Check that the control plane has set up its streams: `trellis doctor`.",
  });
}

function refused(code: number): TransportError {
  return new TransportError({
    code: "trellis.connection.store_refused",
    message: `The platform's authorization store refused a read (${code}).`,
  });
}
