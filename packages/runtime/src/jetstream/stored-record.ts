import type { Msg } from "@nats-io/nats-core";

/** A message of a stream, as a direct get or a republish brings it. Nothing is decoded before it is asked for. */
export class StoredRecord {
  readonly subject: string;
  /** Position in the stream. */
  readonly sequence: number;
  readonly data: Uint8Array;
  /** When the server stored it, as it says so. */
  readonly timeText: string;
  readonly #others: ReadonlyMap<string, string> | undefined;

  private constructor(fields: Fields, data: Uint8Array) {
    this.subject = fields.subject;
    this.sequence = fields.sequence;
    this.data = data;
    this.timeText = fields.time;
    this.#others = fields.others;
  }

  /** `undefined` for a message that is no stored one, or whose sequence a number cannot hold exactly. */
  static of(message: Msg): StoredRecord | undefined {
    const { headers } = message;
    if (headers === undefined) return undefined;
    const fields: Fields = { subject: "", sequence: -1, time: "", others: undefined };
    for (const [name, values] of headers) read(fields, name, values);
    if (fields.subject === "" || !Number.isSafeInteger(fields.sequence) || fields.sequence < 1)
      return undefined;
    return new StoredRecord(fields, message.data);
  }

  /** When the server stored it. */
  get storedAt(): Date {
    return new Date(this.timeText);
  }

  get bytes(): number {
    return this.data.length;
  }

  /** It goes away by itself. */
  get expires(): boolean {
    return this.#others?.has("Nats-TTL") ?? false;
  }

  /** Of a republished message: the sequence of the one before it on its subject, 0 when it is the first. */
  get previous(): number | undefined {
    const text = this.#others?.get("Nats-Last-Sequence");
    return text === undefined ? undefined : Number(text);
  }

  /** A header that its writer gave, or that the server added of its own. */
  get(name: string): string | undefined {
    return this.#others?.get(name);
  }
}

interface Fields {
  subject: string;
  sequence: number;
  time: string;
  others: Map<string, string> | undefined;
}

/**
 * The server adds what it knows behind the headers that the writer gave: of several values of one name the last is its
 * own. So nobody can lie about subject, sequence and time, be it that the broker itself was made to store an answer.
 */
function read(fields: Fields, name: string, values: readonly string[]): void {
  const last = values.at(-1) ?? "";
  switch (name) {
    case "Nats-Subject":
      fields.subject = last;
      return;
    case "Nats-Sequence":
      fields.sequence = Number(last);
      return;
    case "Nats-Time-Stamp":
      fields.time = last;
      return;
    case "Nats-Stream":
      return;
    default:
      (fields.others ??= new Map()).set(name, name === "Nats-Last-Sequence" ? last : (values[0] ?? ""));
  }
}
