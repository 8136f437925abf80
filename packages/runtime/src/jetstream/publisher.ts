import type { Msg } from "@nats-io/nats-core";
import { TransportError } from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";
import { encodeHeaders } from "../connect/message-headers.ts";
import { BrokerRequest, type RequestFailure, type RequestOptions } from "./broker-request.ts";
import type { BrokerRequests } from "./broker-requests.ts";

/** What the server says of a message that it has stored. */
export interface PubAck {
  readonly stream: string;
  readonly seq: number;
  /** It was stored before, under the same message id. */
  readonly duplicate: boolean;
}

export interface PublishOptions extends RequestOptions {
  /** Plain text each; line breaks are refused. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Within the stream's duplicate window a second message of this id is not stored. */
  readonly msgId?: string | undefined;
  /** Stored only if the last message of the subject has this sequence; 0: if there is none. */
  readonly expectLastSubjectSequence?: number | undefined;
  /** The message goes away by itself, after whole seconds. */
  readonly ttlSeconds?: number | undefined;
  /** Send again when the answer was lost with the socket: for messages that are stored once at most. */
  readonly repeatable?: boolean | undefined;
}

/** The server refused to store a message. */
export class PublishError extends Error {
  override readonly name = "PublishError";
  /** Like an HTTP status. */
  readonly code: number;
  /** The server's own number: {@link WRONG_LAST_SEQUENCE}, and so on. */
  readonly errCode: number;
  readonly description: string;

  constructor({ code, errCode, description }: { code: number; errCode: number; description: string }) {
    super(`The broker refused a message (${errCode}): ${description}`);
    this.code = code;
    this.errCode = errCode;
    this.description = description;
  }
}

/** `errCode` of a message whose expected last sequence is not that of the stream. */
export const WRONG_LAST_SEQUENCE = 10071;

/**
 * Publishes to streams and waits for the server's word that the message is stored, over our own inbox. Rejects with a
 * `PublishError` when the server refuses, with a `RequestFailure` when no answer could be had.
 */
export class JetStreamPublisher {
  readonly #requests: BrokerRequests;

  constructor(requests: BrokerRequests) {
    this.#requests = requests;
  }

  publish(subject: string, data: Uint8Array, options: PublishOptions): Promise<PubAck> {
    return new Promise((resolve, reject) => {
      const publish = new Publish({
        subject,
        data,
        resolve,
        reject,
        repeatable: options.repeatable ?? false,
      });
      publish.headers = headersOf(options);
      this.#requests.begin(publish, options);
    });
  }
}

function headersOf(options: PublishOptions): Uint8Array | undefined {
  const { msgId, expectLastSubjectSequence, ttlSeconds } = options;
  const headers: Record<string, string> = { ...options.headers };
  if (msgId !== undefined) headers["Nats-Msg-Id"] = msgId;
  if (expectLastSubjectSequence !== undefined)
    headers["Nats-Expected-Last-Subject-Sequence"] = String(expectLastSubjectSequence);
  if (ttlSeconds !== undefined) headers["Nats-TTL"] = `${ttlSeconds}s`;
  for (const _ in headers) return encodeHeaders(headers);
  return undefined;
}

interface PublishInput {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly repeatable: boolean;
  readonly resolve: (ack: PubAck) => void;
  readonly reject: (error: PublishError | RequestFailure) => void;
}

class Publish extends BrokerRequest {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly repeatable: boolean;
  readonly #resolve: PublishInput["resolve"];
  readonly #reject: PublishInput["reject"];

  constructor({ subject, data, repeatable, resolve, reject }: PublishInput) {
    super();
    this.subject = subject;
    this.payload = data;
    this.repeatable = repeatable;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override onReply(message: Msg): void {
    if (isNoResponders(message)) return this.onMissing();
    this.done();
    const answer = readAck(message);
    if (answer === undefined) this.#reject(unreadableAck());
    else if (answer instanceof PublishError) this.#reject(answer);
    else this.#resolve(answer);
  }

  override fail(error: RequestFailure): void {
    this.#reject(error);
  }
}

/** Reads the answer to a publish; `undefined` when it is none. */
export function readAck(message: Msg): PubAck | PublishError | undefined {
  let answer: { stream?: unknown; seq?: unknown; duplicate?: unknown; error?: unknown };
  try {
    answer = message.json();
  } catch {
    return undefined;
  }
  const { stream, seq, duplicate, error } = answer;
  if (typeof error === "object" && error !== null) return refusal(error);
  // A sequence beyond 2^53 would be rounded: better no answer than a wrong one.
  if (typeof stream !== "string" || typeof seq !== "number" || !Number.isSafeInteger(seq)) return undefined;
  return { stream, seq, duplicate: duplicate === true };
}

function refusal(error: { code?: unknown; err_code?: unknown; description?: unknown }): PublishError {
  const { code, err_code, description } = error;
  return new PublishError({
    code: typeof code === "number" ? code : 0,
    errCode: typeof err_code === "number" ? err_code : 0,
    description: typeof description === "string" ? description : "",
  });
}

export function unreadableAck(): TransportError {
  return new TransportError({
    code: "trellis.jetstream.unreadable",
    message: "The broker's answer to a write cannot be understood, or its sequence is beyond 2^53.",
  });
}
