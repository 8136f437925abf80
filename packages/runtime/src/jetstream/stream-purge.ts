import type { Msg } from "@nats-io/nats-core";
import { TransportError } from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";
import { BrokerRequest, type RequestFailure, type RequestOptions } from "./broker-request.ts";
import type { BrokerRequests } from "./broker-requests.ts";

const encoder = new TextEncoder();

/** A request to JetStream's own API, answered by JSON. All that we ask for may be asked twice. */
class ApiCall extends BrokerRequest {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly repeatable = true;
  readonly #resolve: (answer: Readonly<Record<string, unknown>>) => void;
  readonly #reject: (error: RequestFailure) => void;

  constructor(
    { subject, body }: { subject: string; body: object },
    resolve: (answer: Readonly<Record<string, unknown>>) => void,
    reject: (error: RequestFailure) => void,
  ) {
    super();
    this.subject = subject;
    this.payload = encoder.encode(JSON.stringify(body));
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override onReply(message: Msg): void {
    if (isNoResponders(message)) return this.onMissing();
    this.done();
    const answer = readAnswer(message);
    const refused = answer?.["error"];
    if (answer !== undefined && refused === undefined) this.#resolve(answer);
    else this.#reject(apiRefused(refused));
  }

  override fail(error: RequestFailure): void {
    this.#reject(error);
  }
}

/** Removes every message of a subject from a stream. */
export async function purgeSubject(
  requests: BrokerRequests,
  where: { stream: string; filter: string },
  options: RequestOptions,
): Promise<void> {
  const subject = `$JS.API.STREAM.PURGE.${where.stream}`;
  await call(requests, { subject, body: { filter: where.filter } }, options);
}

/** The subjects of a stream that a filter matches; of very many only a part. */
export async function subjectsOf(
  requests: BrokerRequests,
  where: { stream: string; filter: string },
  options: RequestOptions,
): Promise<readonly string[]> {
  const subject = `$JS.API.STREAM.INFO.${where.stream}`;
  const answer = await call(requests, { subject, body: { subjects_filter: where.filter } }, options);
  const { state } = answer;
  if (typeof state !== "object" || state === null || !("subjects" in state)) return [];
  const { subjects } = state;
  return typeof subjects === "object" && subjects !== null ? Object.keys(subjects) : [];
}

function call(
  requests: BrokerRequests,
  request: { subject: string; body: object },
  options: RequestOptions,
): Promise<Readonly<Record<string, unknown>>> {
  return new Promise((resolve, reject) => {
    requests.begin(new ApiCall(request, resolve, reject), options);
  });
}

function readAnswer(message: Msg): Readonly<Record<string, unknown>> | undefined {
  try {
    const answer: unknown = message.json();
    return typeof answer === "object" && answer !== null ? (answer as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function apiRefused(error: unknown): TransportError {
  const code = typeof error === "object" && error !== null && "err_code" in error ? error.err_code : 0;
  return new TransportError({
    code: "trellis.jetstream.refused",
    message: "The broker refused a request about a stream.",
    context: { errCode: typeof code === "number" ? code : 0 },
  });
}
