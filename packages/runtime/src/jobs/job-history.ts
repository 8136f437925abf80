import { type JobQueueSubjects, notesOf, transitionsOf } from "@trellis/protocol/jobs";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { StreamReader } from "../jetstream/stream-reader.ts";

/** Transitions that are fetched one by one before the whole stream is asked. */
const maxGaps = 32;
const pageLimit = 512;
/** Notes of which every one counts; of the others the newest is all there is, or all that counts. */
const kept = [".logged", ".waiting", ".resumed"];

/** What the writer of a fenced message named as the last one before it. */
export const expectedSequence = "Nats-Expected-Last-Subject-Sequence";

/**
 * What the stream holds of one job, found in the same time whether it holds a hundred jobs or millions: a read by filter
 * goes through everything behind what it finds. The last message of each subject comes in one answer, and each transition
 * names the one before it, since that is what it was fenced by.
 */
export class JobHistory {
  readonly #reader: StreamReader;
  readonly #subjects: JobQueueSubjects;
  readonly #timeoutMs: number;

  constructor(reader: StreamReader, subjects: JobQueueSubjects, timeoutMs: number) {
    this.#reader = reader;
    this.#subjects = subjects;
    this.#timeoutMs = timeoutMs;
  }

  /** Every transition of a job, in order. */
  async transitions(jobId: string): Promise<readonly StoredRecord[]> {
    const filter = transitionsOf(this.#subjects, jobId);
    const lasts = await this.#reader.lastOfEach([filter], this.#request());
    return this.#chain(lasts.orThrow(), filter);
  }

  /** Transitions and notes of a job, in order. */
  async events(jobId: string): Promise<readonly StoredRecord[]> {
    const filters = [transitionsOf(this.#subjects, jobId), notesOf(this.#subjects, jobId)] as const;
    const lasts = (await this.#reader.lastOfEach(filters, this.#request())).orThrow();
    const isNote = ({ subject }: StoredRecord) => subject.startsWith(`${this.#subjects.notes}.`);
    const chain = await this.#chain(
      lasts.filter((record) => !isNote(record)),
      filters[0],
    );
    const notes = lasts.filter(isNote);
    const whole = notes.some(({ subject }) => kept.some((type) => subject.endsWith(type)));
    const all = whole ? await this.all(filters[1], chain[0]?.sequence) : notes;
    return [...chain, ...all].sort((a, b) => a.sequence - b.sequence);
  }

  /** Everything that a filter matches, from a sequence on. */
  async all(filter: string, from = 1): Promise<readonly StoredRecord[]> {
    const records: StoredRecord[] = [];
    for (let next = from; ; ) {
      const page = await this.#reader.page({ filter, from: next, limit: pageLimit }, this.#request());
      const { records: found, complete } = page.orThrow();
      records.push(...found);
      const last = found.at(-1);
      if (complete || last === undefined) return records;
      next = last.sequence + 1;
    }
  }

  /** The transitions that lead to the last one; where one is not to be had, whatever the stream has. */
  async #chain(lasts: readonly StoredRecord[], filter: string): Promise<readonly StoredRecord[]> {
    const known = new Map(lasts.map((record) => [record.sequence, record]));
    const chain: StoredRecord[] = [];
    let record = known.get(Math.max(...known.keys()));
    for (let gaps = 0; record !== undefined; ) {
      chain.push(record);
      const before = Number(record.get(expectedSequence));
      if (before === 0) return chain.reverse();
      record = known.get(before);
      if (record !== undefined) continue;
      gaps += 1;
      if (gaps > maxGaps || !(before > 0)) break;
      record = (await this.#reader.at(before, this.#request())).orThrow();
    }
    return chain.length === 0 ? chain : this.all(filter);
  }

  #request() {
    return { timeoutMs: this.#timeoutMs };
  }
}
