import {
  JetStreamApiError,
  type JetStreamClient,
  JetStreamError,
  type JetStreamManager,
  type StoredMsg,
} from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/transport-node";
import {
  DEAD_LETTER_HEADERS,
  type DeadLetter,
  deadLetterStream,
  deadLetterSubject,
  EVENT_HEADERS,
  EVENT_STREAM,
  REPLAY_HEADERS,
  readDeadLetter,
  replaySubject,
  resourceName,
} from "@trellis/protocol";
import { deadLettersOf, secretOf } from "../resources/wanted.ts";
import type { DeploymentRow } from "../storage/deployments.ts";

/** A dead letter as it is stored; what cannot be read as one is not shown, since anybody's answer may end there. */
export interface StoredLetter {
  readonly letter: DeadLetter;
  readonly alias: string;
  readonly sequence: number;
  /** Position in the stream of dead letters. */
  readonly position: number;
  readonly message: StoredMsg;
}

const own = Object.values(EVENT_HEADERS).filter((name) => name !== EVENT_HEADERS.messageId);
/** Bytes of letters that one page may load. */
const pageBytes = 8 * 1024 * 1024;
const timeout = 5_000;

/** The dead letters of deployments, as an operator works on them. */
export class DeadLetterStore {
  readonly #nats: NatsConnection;
  readonly #manager: () => Promise<JetStreamManager>;
  readonly #client: JetStreamClient;

  constructor(nats: NatsConnection, manager: () => Promise<JetStreamManager>, client: JetStreamClient) {
    this.#nats = nats;
    this.#manager = manager;
    this.#client = client;
  }

  /** How many letters a consumer has: one round trip, whatever the number. */
  async count(deployment: DeploymentRow, alias: string): Promise<number> {
    const stream = deadLetterStream(secretOf(deployment));
    const ask = { seq: 1, batch: 1, next_by_subj: `${deadLettersOf(deployment, alias)}.*` };
    const answer = await this.#nats.request(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(ask), { timeout });
    if ((answer.headers?.code ?? 0) >= 400) return 0;
    return Number(answer.headers?.get("Nats-Num-Pending") ?? 0) + 1;
  }

  /** Letters behind a position, in order. `next`: where the following page begins; absent on the last one. */
  async page(
    deployment: DeploymentRow,
    input: { alias?: string | undefined; after: number; limit: number; fits(letter: StoredLetter): boolean },
  ): Promise<{ letters: StoredLetter[]; next: number | undefined }> {
    const stream = deadLetterStream(secretOf(deployment));
    const { alias, limit, fits } = input;
    const prefix =
      alias === undefined
        ? `${deadLettersOf(deployment, "x").slice(0, -1)}*`
        : deadLettersOf(deployment, alias);
    const filter = `${prefix}.*`;
    const manager = await this.#manager();
    const letters: StoredLetter[] = [];
    let position = input.after;
    for (let scanned = 0; scanned < maxScanned; ) {
      const ask = { seq: position + 1, batch: limit, max_bytes: pageBytes, next_by_subj: filter };
      let got = 0;
      for await (const message of messagesOf(manager, stream, ask)) {
        got += 1;
        position = message.seq;
        const letter = readLetter(message);
        if (letter !== undefined && fits(letter)) letters.push(letter);
        if (letters.length === limit) return { letters, next: position };
      }
      scanned += got;
      if (got === 0) return { letters, next: undefined };
    }
    return { letters, next: position };
  }

  async get(deployment: DeploymentRow, alias: string, sequence: number): Promise<StoredLetter | undefined> {
    const subject = deadLetterSubject(deadLettersOf(deployment, alias), sequence);
    const message = await this.#last(deadLetterStream(secretOf(deployment)), { last_by_subj: subject });
    return message === undefined ? undefined : readLetter(message);
  }

  /** The event's own bytes: of the letter, or of the stream when they did not fit beside the reason. */
  async payload({ letter, message }: StoredLetter): Promise<Uint8Array | undefined> {
    if (message.header.get(DEAD_LETTER_HEADERS.body) !== "omitted") return message.data;
    const found = await this.#last(EVENT_STREAM, { seq: letter.sequence });
    return found?.subject === letter.subject ? found.data : undefined;
  }

  /**
   * Publishes the event again for this consumer alone; false when its bytes are not kept any more. The same letter
   * twice within the stream's window is given once.
   */
  async replay(deployment: DeploymentRow, stored: StoredLetter): Promise<boolean> {
    const { letter, message, alias, position } = stored;
    const payload = await this.payload(stored);
    if (payload === undefined) return false;
    const consumer = resourceName(secretOf(deployment), alias);
    const made = headers();
    for (const name of own) if (message.header.has(name)) made.set(name, message.header.get(name));
    made.set(REPLAY_HEADERS.messageId, message.header.get(DEAD_LETTER_HEADERS.messageId));
    made.set(REPLAY_HEADERS.subject, letter.subject);
    made.set(REPLAY_HEADERS.stored, String(letter.storedAt));
    const msgID = `replay ${consumer} ${position}`;
    await this.#client.publish(replaySubject(consumer), payload, { headers: made, msgID, timeout });
    await this.discard(deployment, stored);
    return true;
  }

  async discard(deployment: DeploymentRow, { position }: StoredLetter): Promise<void> {
    const manager = await this.#manager();
    try {
      await manager.streams.deleteMessage(deadLetterStream(secretOf(deployment)), position, false);
    } catch (error) {
      if (!(error instanceof JetStreamApiError && error.code === gone)) throw error;
    }
  }

  async #last(
    stream: string,
    query: { seq: number } | { last_by_subj: string },
  ): Promise<StoredMsg | undefined> {
    return (await (await this.#manager()).direct.getMessage(stream, query)) ?? undefined;
  }
}

/** A filtered page looks through so many letters; then it is the reader's to go on. */
const maxScanned = 5_000;
const gone = 10_043;
const nothingThere = 404;

type Batch = Parameters<JetStreamManager["direct"]["getBatch"]>[1];

/** A batch; of a stream without anything that matches, nothing: the client takes that for an error. */
async function* messagesOf(
  manager: JetStreamManager,
  stream: string,
  ask: Batch,
): AsyncGenerator<StoredMsg, void> {
  try {
    yield* await manager.direct.getBatch(stream, ask);
  } catch (error) {
    if (!(error instanceof JetStreamError && "code" in error && error.code === nothingThere)) throw error;
  }
}

function readLetter(message: StoredMsg): StoredLetter | undefined {
  const letter = readDeadLetter((name) => message.header.get(name));
  const [, , , alias = "", sequence = ""] = message.subject.split(".");
  return letter === undefined
    ? undefined
    : { letter, alias, sequence: Number(sequence), position: message.seq, message };
}
