import { readWhole } from "./event-proof.ts";
import type { EventRefusal } from "./event-verdict.ts";

/** The headers of a dead letter, beside those of the event itself. */
export const DEAD_LETTER_HEADERS = {
  reason: "Trellis-Dead-Reason",
  error: "Trellis-Dead-Error",
  attempts: "Trellis-Dead-Attempts",
  subject: "Trellis-Dead-Subject",
  stored: "Trellis-Dead-Stored",
  sequence: "Trellis-Dead-Sequence",
  at: "Trellis-Dead-At",
  /** The event's own message id: in this stream it would be another's. */
  messageId: "Trellis-Dead-Message-Id",
  /** `omitted`: the event was so large that it does not fit beside the reason; it is still in its stream. */
  body: "Trellis-Dead-Body",
} as const;

/** Why an event is in the dead letters. */
export type DeadReason =
  | EventRefusal
  /** The payload does not fit the schema that the consumer knows. */
  | "schema_mismatch"
  /** The handler failed as often as it may. */
  | "exhausted"
  /** The last attempts ended without a word: the process died in the handler. */
  | "crashed"
  /** No handler of this consumer takes such an event. */
  | "unhandled";

/** What is known about an event that was not handled. */
export interface DeadLetter {
  readonly reason: DeadReason;
  /** Name and text of what went wrong, for people. */
  readonly error: { readonly type: string; readonly message: string; readonly id?: string };
  /** Attempts begun, this one included. */
  readonly attempts: number;
  /** Where the event was published. */
  readonly subject: string;
  /** When and as which message of the events' stream it was stored. */
  readonly storedAt: number;
  readonly sequence: number;
  readonly at: number;
}

const MAX_MESSAGE = 1_024;
const NOT_ASCII = /[^\x20-\x7e]/g;

/** The headers of a dead letter. Values are one line of ASCII, whatever the error says. */
export function writeDeadLetter(letter: DeadLetter): Record<string, string> {
  const { type, message, id } = letter.error;
  const error = { type, message: message.slice(0, MAX_MESSAGE), ...(id === undefined ? {} : { id }) };
  return {
    [DEAD_LETTER_HEADERS.reason]: letter.reason,
    [DEAD_LETTER_HEADERS.error]: JSON.stringify(error).replace(NOT_ASCII, escaped),
    [DEAD_LETTER_HEADERS.attempts]: String(letter.attempts),
    [DEAD_LETTER_HEADERS.subject]: letter.subject,
    [DEAD_LETTER_HEADERS.stored]: String(letter.storedAt),
    [DEAD_LETTER_HEADERS.sequence]: String(letter.sequence),
    [DEAD_LETTER_HEADERS.at]: String(letter.at),
  };
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Reads a dead letter's headers; `undefined` when they are not those of one. */
export function readDeadLetter(header: (name: string) => string): DeadLetter | undefined {
  const attempts = readWhole(header(DEAD_LETTER_HEADERS.attempts));
  const storedAt = readWhole(header(DEAD_LETTER_HEADERS.stored));
  const sequence = readWhole(header(DEAD_LETTER_HEADERS.sequence));
  const at = readWhole(header(DEAD_LETTER_HEADERS.at));
  const error = readError(header(DEAD_LETTER_HEADERS.error));
  const reason = header(DEAD_LETTER_HEADERS.reason);
  if (attempts === undefined || storedAt === undefined || sequence === undefined || at === undefined)
    return undefined;
  if (error === undefined || reason === "") return undefined;
  const subject = header(DEAD_LETTER_HEADERS.subject);
  return { reason: reason as DeadReason, error, attempts, subject, storedAt, sequence, at };
}

function readError(text: string): DeadLetter["error"] | undefined {
  try {
    const value = JSON.parse(text) as Partial<DeadLetter["error"]> | null;
    if (typeof value?.type !== "string" || typeof value.message !== "string") return undefined;
    const { type, message, id } = value;
    return typeof id === "string" ? { type, message, id } : { type, message };
  } catch {
    return undefined;
  }
}

/** Where a consumer's dead letter of one stored event goes: one subject each, so that it is there once at the most. */
export function deadLetterSubject(prefix: string, sequence: number): string {
  return `${prefix}.${sequence}`;
}

/** Where an operator publishes an event again for one consumer alone. No API id looks like it. */
export function replaySubject(consumer: string): string {
  return `events.v1.replay.${consumer}`;
}

/** The headers that a replayed event has beside its own: where, when and under which id it was stored at first. */
export const REPLAY_HEADERS = {
  messageId: "Trellis-Replay-Message-Id",
  subject: "Trellis-Replay-Subject",
  stored: "Trellis-Replay-Stored",
} as const;
