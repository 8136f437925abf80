import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import {
  DEAD_LETTER_HEADERS,
  deadLetterPrefix,
  deadLetterStream,
  EVENT_HEADERS,
  EVENT_STREAM,
  REPLAY_HEADERS,
  readDeadLetter,
  readEventSubject,
  replaySubject,
  resourceName,
} from "@trellis/protocol";
import { JetStreamPublisher, type PlainLink, StreamReader } from "@trellis/runtime/node";

/** A durable consumer, by what its names are made of. */
export interface ConsumerPlace {
  readonly secret: string;
  readonly alias: string;
}

/** A dead letter as it is stored. */
export interface StoredLetter {
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly event: string;
  readonly api: string;
  readonly eventId: string;
  readonly letter: NonNullable<ReturnType<typeof readDeadLetter>>;
  header(name: string): string;
}

const timeoutMs = 5_000;
const own = Object.values(EVENT_HEADERS).filter((name) => name !== EVENT_HEADERS.messageId);

/**
 * Dead letters of any consumer: read, given to their consumer again, thrown away.
 *
 * Invariant D1: a letter goes away only after the broker has confirmed that its event was published again. A crash between
 * leaves the letter, and a second replay within the stream's window of duplicates is stored once.
 */
export class DeadLetterDesk {
  readonly #link: PlainLink;
  readonly #publisher: JetStreamPublisher;

  constructor(link: PlainLink) {
    this.#link = link;
    this.#publisher = new JetStreamPublisher(link.requests);
  }

  /** Letters from a sequence on, the oldest first, and where the next page begins. */
  async page(
    place: ConsumerPlace,
    from: number,
    limit: number,
  ): Promise<{ letters: readonly StoredLetter[]; next: number | undefined }> {
    const filter = `${deadLetterPrefix(place.secret, place.alias)}.*`;
    const page = await this.#reader(deadLetterStream(place.secret)).page(
      { filter, from, limit },
      { timeoutMs },
    );
    const { records, complete } = page.orThrow();
    const letters = records.flatMap((record) => readLetter(record) ?? []);
    const last = records.at(-1);
    return { letters, next: complete || last === undefined ? undefined : last.sequence + 1 };
  }

  async get(place: ConsumerPlace, sequence: number): Promise<StoredLetter | undefined> {
    const { letters } = await this.page(place, sequence, 1);
    const [letter] = letters;
    return letter?.sequence === sequence ? letter : undefined;
  }

  /** The event's payload: beside the reason, or, when it was too large for that, from the stream of events. */
  async payload(letter: StoredLetter): Promise<Uint8Array | undefined> {
    if (letter.header(DEAD_LETTER_HEADERS.body) !== "omitted") return letter.data;
    const { subject, sequence } = letter.letter;
    const page = await this.#reader(EVENT_STREAM).page(
      { filter: subject, from: sequence, limit: 1 },
      { timeoutMs },
    );
    const [record] = page.orThrow().records;
    return record?.sequence === sequence ? record.data : undefined;
  }

  /** Publishes the event again for this consumer alone; false when its payload is no longer kept. */
  async replay(place: ConsumerPlace, stored: StoredLetter): Promise<boolean> {
    const data = await this.payload(stored);
    if (data === undefined) return false;
    const { subject, storedAt } = stored.letter;
    const headers: Record<string, string> = {
      [REPLAY_HEADERS.messageId]: stored.header(DEAD_LETTER_HEADERS.messageId),
      [REPLAY_HEADERS.subject]: subject,
      [REPLAY_HEADERS.stored]: String(storedAt),
    };
    for (const name of own) {
      const value = stored.header(name);
      if (value !== "") headers[name] = value;
    }
    const consumer = resourceName(place.secret, place.alias);
    await this.#publisher.publish(replaySubject(consumer), data, {
      headers,
      msgId: `replay-${deadLetterStream(place.secret)}-${stored.sequence}`,
      repeatable: true,
      timeoutMs,
    });
    await this.discard(place, stored);
    return true;
  }

  async discard(place: ConsumerPlace, { subject }: StoredLetter): Promise<void> {
    const manager = await this.#manager();
    await manager.streams.purge(deadLetterStream(place.secret), { filter: subject });
  }

  /** How a consumer stands, and how many dead letters it has. */
  async standing(place: ConsumerPlace) {
    const manager = await this.#manager();
    const filter = `${deadLetterPrefix(place.secret, place.alias)}.*`;
    const [info, letters] = await Promise.all([
      manager.consumers.info(EVENT_STREAM, resourceName(place.secret, place.alias)),
      manager.streams.info(deadLetterStream(place.secret), { subjects_filter: filter }),
    ]);
    return {
      pending: info.num_pending,
      running: info.num_ack_pending,
      redelivered: info.num_redelivered,
      deadLetters: Object.keys(letters.state.subjects ?? {}).length,
    };
  }

  #reader(stream: string): StreamReader {
    return new StreamReader(this.#link.requests, stream);
  }

  #manager(): Promise<JetStreamManager> {
    return jetstreamManager(this.#link.nats, { checkAPI: false });
  }
}

interface Stored {
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  get(name: string): string | undefined;
}

function readLetter(record: Stored): StoredLetter | undefined {
  const header = (name: string) => record.get(name) ?? "";
  const letter = readDeadLetter(header);
  if (letter === undefined) return undefined;
  const address = readEventSubject(letter.subject);
  const { sequence, subject, data } = record;
  return {
    sequence,
    subject,
    data,
    event: address?.action ?? "",
    api: address?.api ?? "",
    eventId: header(EVENT_HEADERS.id),
    letter,
    header,
  };
}
