import {
  decodeObjectDigest,
  type ObjectMeta,
  type Port,
  StoreError,
  storeChunkPrefix,
} from "@trellis/protocol";
import type { RequestOptions } from "../jetstream/broker-request.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { Page, StreamReader } from "../jetstream/stream-reader.ts";
import { type FoundMeta, firstChunkOf, type ObjectMetas } from "./object-metas.ts";

export interface BytesInput {
  readonly port: Port;
  readonly reader: StreamReader;
  readonly metas: ObjectMetas;
  readonly name: string;
  readonly meta: ObjectMeta;
  readonly record: StoredRecord;
  readonly options: RequestOptions;
}

const pageBytes = 2 * 1024 * 1024;
const pageLimit = 256;
/** Pages that are there or on their way while one is worked on: with less the broker waits for us in between. */
const pagesAhead = 2;

/**
 * The bytes of one object, chunk by chunk, no further ahead than a few pages. At the end, size and digest must be those
 * of the description: what gets through whole is what was stored.
 */
export async function* objectBytes(input: BytesInput): AsyncGenerator<Uint8Array, void, undefined> {
  const { meta, port } = input;
  if (meta.size === 0) return;
  const hash = port.sha256Stream();
  const pages = new ChunkPages(input);
  let size = 0;
  for (let page = await pages.next(); page !== undefined; page = await pages.next()) {
    for (const { data } of page.records) {
      size += data.length;
      if (size > meta.size) throw await broken(input);
      hash.update(data);
      yield data;
    }
  }
  const digest = decodeObjectDigest(meta.digest);
  if (size !== meta.size || digest === undefined || !port.equal(hash.digest(), digest))
    throw await broken(input);
}

/** The pages of an object's chunks, in order, a few of them ahead of the reader. */
class ChunkPages {
  readonly #input: BytesInput;
  readonly #filter: string;
  readonly #pages: Promise<Page>[] = [];
  /** Where the next page begins; unknown until the one before has come. */
  #from: number | undefined;
  #bytes = 0;

  constructor(input: BytesInput) {
    this.#input = input;
    this.#filter = `${storeChunkPrefix(input.name)}.${input.meta.chunksId}`;
    this.#from = firstChunkOf(input.record);
    this.#fetch();
  }

  /** `undefined` at the end. */
  next(): Promise<Page> | undefined {
    const page = this.#pages.shift();
    this.#fetch();
    return page;
  }

  #fetch(): void {
    const from = this.#from;
    if (from === undefined || this.#pages.length >= pagesAhead) return;
    this.#from = undefined;
    const { reader, options } = this.#input;
    const request = { filter: this.#filter, from, limit: pageLimit, maxBytes: pageBytes };
    // Before the page is given to its reader, who may be the last: the next one must be known by then.
    const page = reader.page(request, options).then((result) => {
      const come = result.orThrow();
      this.#onPage(come);
      return come;
    });
    page.catch(() => {}); // met by whoever takes the page
    this.#pages.push(page);
  }

  #onPage({ records, complete }: Page): void {
    this.#bytes += records.reduce((bytes, { data }) => bytes + data.length, 0);
    const last = records.at(-1);
    if (complete || last === undefined || this.#bytes >= this.#input.meta.size) return;
    this.#from = last.sequence + 1;
    this.#fetch();
  }
}

/** Chunks are missing or wrong: because the object is no longer this one, or because it is damaged. */
async function broken({ metas, meta, options }: BytesInput): Promise<StoreError> {
  const now: FoundMeta = await metas.find(meta.key, options);
  const same = now.kind === "object" && now.meta.chunksId === meta.chunksId;
  return new StoreError({ reason: same ? "corrupt" : "replaced", key: meta.key });
}
