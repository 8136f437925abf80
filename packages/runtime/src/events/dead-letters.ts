import {
  DEAD_LETTER_HEADERS,
  type DeadLetter,
  type DeadReason,
  deadLetterSubject,
  EVENT_HEADERS,
  writeDeadLetter,
} from "@trellis/protocol";
import { isBaseError } from "@trellis/result";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { JetStreamPublisher, PublishError, WRONG_LAST_SEQUENCE } from "../jetstream/publisher.ts";
import type { EventDelivery } from "./event-delivery.ts";

const timeoutMs = 10_000;
/** What the server counts beside the body: names and values of the headers, and some room. */
const margin = 512;
const own = Object.values(EVENT_HEADERS);
const nothing = new Uint8Array(0);

/** Why an event goes to the dead letters. */
export interface Death {
  readonly reason: DeadReason;
  readonly error: DeadLetter["error"];
  readonly attempts: number;
}

/**
 * Writes the events that a consumer could not handle into the dead letters of its deployment: each under a subject of
 * its own that must not exist yet, so that a crash between writing and settling adds nothing.
 */
export class DeadLetters {
  readonly #publisher: JetStreamPublisher;
  readonly #prefix: string;
  readonly #maxPayload: () => number;

  constructor(requests: BrokerRequests, input: { prefix: string; maxPayload: () => number }) {
    this.#publisher = new JetStreamPublisher(requests);
    this.#prefix = input.prefix;
    this.#maxPayload = input.maxPayload;
  }

  /** Resolves when the letter is stored, now or at an earlier try. */
  async write(delivery: EventDelivery, { reason, error, attempts }: Death, at: number): Promise<void> {
    const { sequence } = delivery.message.facts;
    const { message, storedAt } = delivery.origin;
    const { subject } = message;
    const headers = writeDeadLetter({ reason, error, attempts, subject, storedAt, sequence, at });
    let bytes = margin;
    for (const name of own) {
      const value = message.header(name);
      if (value !== "")
        headers[name === EVENT_HEADERS.messageId ? DEAD_LETTER_HEADERS.messageId : name] = value;
    }
    for (const [name, value] of Object.entries(headers)) bytes += name.length + value.length + 4;
    const fits = bytes + message.data.length <= this.#maxPayload();
    if (!fits) headers[DEAD_LETTER_HEADERS.body] = "omitted";
    try {
      await this.#publisher.publish(
        deadLetterSubject(this.#prefix, sequence),
        fits ? message.data : nothing,
        {
          headers,
          expectLastSubjectSequence: 0,
          repeatable: true,
          timeoutMs,
        },
      );
    } catch (error) {
      if (!(error instanceof PublishError && error.errCode === WRONG_LAST_SEQUENCE)) throw error;
    }
  }
}

/** What a dead letter says about what a handler threw or returned. */
export function describeFailure(thrown: unknown): DeadLetter["error"] {
  if (isBaseError(thrown)) return { type: thrown.type, message: thrown.message, id: thrown.id };
  if (thrown instanceof Error) return { type: thrown.name, message: thrown.message };
  return { type: typeof thrown, message: typeof thrown === "string" ? thrown : "not an Error" };
}
