import type { Msg } from "@nats-io/nats-core";
import { directGetSubject, TransportError } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import { isNoResponders } from "../connect/inbox.ts";
import { BrokerRequest, type RequestFailure, type RequestOptions } from "./broker-request.ts";
import type { BrokerRequests } from "./broker-requests.ts";
import { StoredRecord } from "./stored-record.ts";

/** A part of a stream: what a filter matches, from a sequence on. */
export interface PageRequest {
  /** Subject of interest, wildcards allowed. */
  readonly filter: string;
  /** First stream sequence of interest. */
  readonly from: number;
  /** Most messages of the answer. */
  readonly limit: number;
  /** The answer ends after about so many bytes, though never before the first message. */
  readonly maxBytes?: number;
}

export interface Page {
  readonly records: readonly StoredRecord[];
  /** True when the stream held nothing further that matches. */
  readonly complete: boolean;
}

type Settle<T> = (result: Result<T, RequestFailure>) => void;

/**
 * Reads the messages of one stream by direct gets over our own inbox: no stream information, no consumer, nothing
 * kept on the server, one round trip each. Reads are harmless: they wait for the socket and go again after a
 * reconnect.
 */
export class StreamReader {
  readonly #requests: BrokerRequests;
  readonly #base: string;

  constructor(requests: BrokerRequests, stream: string) {
    this.#requests = requests;
    this.#base = directGetSubject(stream);
  }

  /** The last message of a subject; `undefined` when there is none. */
  last(subject: string, options: RequestOptions): Promise<Result<StoredRecord | undefined, RequestFailure>> {
    return new Promise((settle) => this.readLast(subject, options, settle));
  }

  /** {@link last} for hot paths: a callback, called on the broker's own turn, in place of a promise. */
  readLast(subject: string, options: RequestOptions, settle: Settle<StoredRecord | undefined>): void {
    this.#requests.begin(
      new SingleGet({ subject: `${this.#base}.${subject}`, payload: nothing, settle }),
      options,
    );
  }

  /** The message at a sequence; `undefined` when it is no longer there. */
  at(sequence: number, options: RequestOptions): Promise<Result<StoredRecord | undefined, RequestFailure>> {
    return this.#one(this.#base, json({ seq: sequence }), options);
  }

  /** The last message that a filter with wildcards matches. */
  lastOf(filter: string, options: RequestOptions): Promise<Result<StoredRecord | undefined, RequestFailure>> {
    return this.#one(this.#base, json({ last_by_subj: filter }), options);
  }

  /** The last message of every subject that one of the filters matches, in the order of the stream; at most 1 024. */
  async lastOfEach(
    filters: readonly string[],
    options: RequestOptions,
  ): Promise<Result<readonly StoredRecord[], RequestFailure>> {
    const payload = json({ multi_last: filters });
    const page = await new Promise<Result<Page, RequestFailure>>((settle) => {
      this.#requests.begin(new PageGet({ subject: this.#base, payload, settle }), options);
    });
    return page.map(({ records }) => records);
  }

  page(request: PageRequest, options: RequestOptions): Promise<Result<Page, RequestFailure>> {
    const { filter, from, limit, maxBytes } = request;
    const body = json({ seq: from, batch: limit, max_bytes: maxBytes, next_by_subj: filter });
    return new Promise((settle) => {
      this.#requests.begin(new PageGet({ subject: this.#base, payload: body, settle }), options);
    });
  }

  #one(subject: string, payload: Uint8Array, options: RequestOptions) {
    return new Promise<Result<StoredRecord | undefined, RequestFailure>>((settle) => {
      this.#requests.begin(new SingleGet({ subject, payload, settle }), options);
    });
  }
}

const nothing = new Uint8Array(0);
const encoder = new TextEncoder();

function json(body: object): Uint8Array {
  return encoder.encode(JSON.stringify(body));
}

interface GetInput<T> {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly settle: Settle<T>;
}

abstract class Get<T> extends BrokerRequest {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly repeatable = true;
  readonly #settle: Settle<T>;

  constructor({ subject, payload, settle }: GetInput<T>) {
    super();
    this.subject = subject;
    this.payload = payload;
    this.#settle = settle;
  }

  override onReply(message: Msg): void {
    if (isNoResponders(message)) return this.onMissing();
    const code = message.headers?.code ?? 0;
    if (code === 404) return this.onNone();
    if (code === 204) return this.onEnd(message);
    if (code !== 0) return this.refuse(readRefused(code));
    const record = StoredRecord.of(message);
    if (record === undefined) return this.refuse(unreadable());
    this.onRecord(record);
  }

  override fail(error: RequestFailure): void {
    this.#settle(err(error));
  }

  protected abstract onRecord(record: StoredRecord): void;
  /** Nothing matches, or no longer. */
  protected abstract onNone(): void;
  protected onEnd(_message: Msg): void {
    this.refuse(unreadable());
  }

  protected finish(value: T): void {
    this.done();
    this.#settle(ok(value));
  }

  protected refuse(error: RequestFailure): void {
    this.done();
    this.#settle(err(error));
  }
}

class SingleGet extends Get<StoredRecord | undefined> {
  protected override onRecord(record: StoredRecord): void {
    this.finish(record);
  }

  protected override onNone(): void {
    this.finish(undefined);
  }
}

class PageGet extends Get<Page> {
  #records: StoredRecord[] = [];

  override restart(): void {
    this.#records = [];
  }

  protected override onRecord(record: StoredRecord): void {
    this.#records.push(record);
  }

  protected override onNone(): void {
    this.finish({ records: this.#records, complete: true });
  }

  protected override onEnd(message: Msg): void {
    const complete = Number(message.headers?.get("Nats-Num-Pending") ?? 0) === 0;
    this.finish({ records: this.#records, complete });
  }
}

function readRefused(status: number): TransportError {
  return new TransportError({
    code: "trellis.jetstream.read_refused",
    message: `The broker refused a read (${status}).`,
    context: { status },
  });
}

function unreadable(): TransportError {
  return new TransportError({
    code: "trellis.jetstream.unreadable",
    message: "The broker's answer to a read cannot be understood, or its sequence is beyond 2^53.",
  });
}
