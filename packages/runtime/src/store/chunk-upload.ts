import type { Msg } from "@nats-io/nats-core";
import { TransportError } from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";
import { encodeHeaders } from "../connect/message-headers.ts";
import { BrokerRequest, type RequestFailure } from "../jetstream/broker-request.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { PublishError, readAck, unreadableAck } from "../jetstream/publisher.ts";

export interface ChunkUploadInput {
  readonly requests: BrokerRequests;
  /** Where the chunks of this upload go; no other upload has the same. */
  readonly subject: string;
  readonly chunkBytes: number;
  /** For the answer to one chunk. */
  readonly timeoutMs: number;
}

/** Bytes that are under way without an answer. */
const windowBytes = 2 * 1024 * 1024;
/** A chunk lives no longer than half of the window in which the broker knows its id (2 minutes). */
const longestMs = 60_000;

/**
 * Sends the chunks of one object, several at once, in order. Every chunk has an id: after a reconnect those without an
 * answer go again, in order, and the broker stores each once. Within the time that a chunk may live that holds
 * whatever of the first attempt arrived; so what is stored is a beginning of the object, in order, nothing twice.
 * Nothing is sent again for any other reason.
 */
export class ChunkUpload {
  readonly #input: ChunkUploadInput;
  readonly #most: number;
  /** Arrays whose chunk is stored: they are filled again. */
  readonly #free: Uint8Array[] = [];
  #sent = 0;
  #inFlight = 0;
  #firstSequence: number | undefined;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void)[] = [];

  constructor(input: ChunkUploadInput) {
    this.#input = input;
    this.#most = Math.max(2, Math.floor(windowBytes / input.chunkBytes));
  }

  get chunks(): number {
    return this.#sent;
  }

  /** Where in the stream the first chunk is. */
  get firstSequence(): number | undefined {
    return this.#firstSequence;
  }

  /** An array to fill with the next chunk; smaller when the whole object is. */
  take(size = this.#input.chunkBytes): Uint8Array {
    const { chunkBytes } = this.#input;
    return size < chunkBytes ? new Uint8Array(size) : (this.#free.pop() ?? new Uint8Array(chunkBytes));
  }

  /** Sends the beginning of an array that `take` gave; resolves when there is room for another. */
  async send(array: Uint8Array, length: number): Promise<void> {
    this.#throwFailure();
    const { requests, subject, timeoutMs } = this.#input;
    const index = this.#sent;
    this.#sent += 1;
    this.#inFlight += 1;
    const chunk = new ChunkPublish({
      subject,
      data: array.subarray(0, length),
      id: `${subject}.${index}`,
      settle: (outcome) => this.#onSettled(outcome, { index, array }),
    });
    requests.begin(chunk, { timeoutMs: Math.min(timeoutMs, longestMs) });
    while (this.#inFlight >= this.#most && this.#failure === undefined) await this.#settled();
    this.#throwFailure();
  }

  /** Resolves when everything is stored. */
  async finish(): Promise<void> {
    while (this.#inFlight > 0 && this.#failure === undefined) await this.#settled();
    this.#throwFailure();
  }

  /** Resolves when nothing is under way any more, however it ended. */
  async idle(): Promise<void> {
    while (this.#inFlight > 0) await this.#settled();
  }

  #onSettled(
    outcome: number | { readonly error: unknown },
    chunk: { index: number; array: Uint8Array },
  ): void {
    this.#inFlight -= 1;
    if (typeof outcome === "number") {
      if (chunk.index === 0) this.#firstSequence = outcome;
      if (chunk.array.length === this.#input.chunkBytes) this.#free.push(chunk.array);
    } else this.#failure ??= outcome;
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

interface ChunkInput {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly id: string;
  readonly settle: (outcome: number | { readonly error: unknown }) => void;
}

class ChunkPublish extends BrokerRequest {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly repeatable = true;
  readonly #settle: ChunkInput["settle"];

  constructor({ subject, data, id, settle }: ChunkInput) {
    super();
    this.subject = subject;
    this.payload = data;
    this.headers = encodeHeaders({ "Nats-Msg-Id": id });
    this.#settle = settle;
  }

  override onReply(message: Msg): void {
    this.done();
    // To send this one again alone would put it behind those that follow it.
    if (isNoResponders(message)) return this.#settle({ error: noStream() });
    const answer = readAck(message);
    if (answer === undefined) this.#settle({ error: unreadableAck() });
    else if (answer instanceof PublishError) this.#settle({ error: answer });
    else this.#settle(answer.seq);
  }

  override fail(error: RequestFailure): void {
    this.#settle({ error });
  }
}

function noStream(): TransportError {
  return new TransportError({
    code: "trellis.jetstream.no_stream",
    message: "The broker has no such stream.",
  });
}
