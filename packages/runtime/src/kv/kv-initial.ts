import type { Result } from "@trellis/result";
import type { RequestFailure } from "../jetstream/broker-request.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { Page, StreamReader } from "../jetstream/stream-reader.ts";

const timeoutMs = 10_000;
const pageLimit = 2_048;
const pageBytes = 1024 * 1024;

/**
 * The state that a watch or a listing begins with: of every key the newest value, and not what was deleted before. For
 * buckets without a history that is what the stream holds. Else the stream is read twice: first for what is newest.
 */
export class KvInitial {
  readonly #reader: StreamReader;
  readonly #filter: string;
  readonly #history: number;
  readonly #signal: AbortSignal | undefined;
  /** The newest sequence when it began. */
  #head = 0;
  #newest: Map<string, number> | undefined;

  constructor(input: {
    reader: StreamReader;
    filter: string;
    history: number;
    signal: AbortSignal | undefined;
  }) {
    this.#reader = input.reader;
    this.#filter = input.filter;
    this.#history = input.history;
    this.#signal = input.signal;
  }

  async prepare(): Promise<void> {
    const options = { timeoutMs, signal: this.#signal };
    const last = await patiently(() => this.#reader.lastOf(this.#filter, options));
    this.#head = last?.sequence ?? 0;
    if (this.#history === 1 || this.#head === 0) return;
    this.#newest = new Map();
    for (let from = 1; from <= this.#head; ) {
      const request = { filter: this.#filter, from, limit: pageLimit, maxBytes: pageBytes };
      const page: Page = await patiently(() => this.#reader.page(request, options));
      for (const { subject, sequence } of page.records)
        if (sequence <= this.#head) this.#newest.set(subject, sequence);
      const end = page.records.at(-1);
      if (page.complete || end === undefined) return;
      from = end.sequence + 1;
    }
  }

  /** Whether a message from before `ready` belongs to the state. */
  wants({ subject, sequence }: StoredRecord, deleted: boolean): boolean {
    if (sequence > this.#head) return true;
    return !deleted && (this.#newest === undefined || this.#newest.get(subject) === sequence);
  }

  /** `ready` was given: nothing needs to be remembered any more. */
  done(): void {
    this.#newest = undefined;
  }
}

/** Reads again after a time-out: a watch waits as long as its reader does. */
async function patiently<T>(read: () => Promise<Result<T, RequestFailure>>): Promise<T> {
  for (;;) {
    const result = await read();
    if (result.isOk()) return result.value;
    if (result.error.type !== "TimeoutError") throw result.error;
  }
}
