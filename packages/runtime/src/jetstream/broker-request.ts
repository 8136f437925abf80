import type { Msg } from "@nats-io/nats-core";
import type {
  AuthError,
  BusyError,
  CancelledError,
  TimeoutError,
  TransportError,
  UnavailableError,
} from "@trellis/protocol";
import type { ReplySink } from "../connect/inbox.ts";
import { WheelEntry } from "../lifecycle/timer-wheel.ts";

/** Why a request to the broker came to nothing, whatever it asked for. */
export type RequestFailure =
  | TransportError
  | AuthError
  | TimeoutError
  | CancelledError
  | UnavailableError
  | BusyError;

export interface RequestOptions {
  /** Everything included: waiting for the socket, sending, the answer. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Who looks after open requests. */
export interface RequestOwner {
  settle(request: BrokerRequest): void;
  /** Nobody takes its subject. Sends it again for a moment, then ends it. */
  missed(request: BrokerRequest): void;
}

/**
 * One request to JetStream, from its beginning to its one end. It is its own entry in the timer wheel and its own
 * taker of answers: a request costs no closure and no timer.
 */
export abstract class BrokerRequest extends WheelEntry implements ReplySink {
  abstract readonly subject: string;
  abstract readonly payload: Uint8Array;
  /** As `encodeHeaders` writes them. */
  headers: Uint8Array | undefined = undefined;
  /** May go again when its answer was lost with the socket: reads, and what the broker stores once at most. */
  abstract readonly repeatable: boolean;
  /** Set by the owner while an answer is awaited. */
  reply: string | undefined = undefined;
  timeoutMs = 0;
  /** How often the broker said that nobody takes the subject. */
  misses = 0;
  unlisten: (() => void) | undefined = undefined;
  owner: RequestOwner | undefined = undefined;

  abstract onReply(message: Msg): void;

  /** Ends the request without an answer. */
  abstract fail(error: RequestFailure): void;

  /** The deadline passed; set by the owner, which words the error. */
  onExpire: (request: BrokerRequest) => void = () => {};

  override expire(): void {
    this.onExpire(this);
  }

  /** Forgets what has come of an answer: it will come anew. */
  restart(): void {}

  /** The stream is not there, or JetStream is not up yet. */
  protected onMissing(): void {
    this.owner?.missed(this);
  }

  /** To be called once, when the answer is complete. */
  protected done(): void {
    this.owner?.settle(this);
  }
}
