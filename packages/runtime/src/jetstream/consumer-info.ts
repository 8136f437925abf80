import type { Msg } from "@nats-io/nats-core";
import { isNoResponders } from "../connect/inbox.ts";
import { BrokerRequest, type RequestFailure } from "./broker-request.ts";
import type { BrokerRequests } from "./broker-requests.ts";

const nothing = new Uint8Array(0);
const timeoutMs = 2_000;

/**
 * How many messages a consumer has delivered, to whomever, and not heard of. For the rare moment in which a replica
 * takes over; never part of handling a message. Rejects with a `RequestFailure`.
 */
export function unsettledOf(requests: BrokerRequests, stream: string, consumer: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const subject = `$JS.API.CONSUMER.INFO.${stream}.${consumer}`;
    requests.begin(new InfoRequest(subject, resolve, reject), { timeoutMs });
  });
}

class InfoRequest extends BrokerRequest {
  readonly subject: string;
  readonly payload = nothing;
  readonly repeatable = true;
  readonly #resolve: (unsettled: number) => void;
  readonly #reject: (error: RequestFailure | Error) => void;

  constructor(
    subject: string,
    resolve: (unsettled: number) => void,
    reject: (error: RequestFailure | Error) => void,
  ) {
    super();
    this.subject = subject;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override onReply(message: Msg): void {
    if (isNoResponders(message)) return this.onMissing();
    this.done();
    const { num_ack_pending: unsettled } = readInfo(message);
    if (typeof unsettled === "number") this.#resolve(unsettled);
    else this.#reject(new Error("the broker did not tell of the consumer"));
  }

  override fail(error: RequestFailure): void {
    this.#reject(error);
  }
}

function readInfo(message: Msg): { num_ack_pending?: unknown } {
  try {
    return message.json();
  } catch {
    return {};
  }
}
