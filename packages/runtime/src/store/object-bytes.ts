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

/** Bytes of one read from the stream; the next one is fetched while this one is taken. */
const pageBytes = 1024 * 1024;
const pageLimit = 256;

/**
 * The bytes of one object, chunk by chunk, no further ahead than one page. At the end, size and digest must be those
 * of the description: what gets through whole is what was stored.
 */
export async function* objectBytes(input: BytesInput): AsyncGenerator<Uint8Array, void, undefined> {
  const { meta, port, name } = input;
  if (meta.size === 0) return;
  const filter = `${storeChunkPrefix(name)}.${meta.chunksId}`;
  const hash = port.sha256Stream();
  let size = 0;
  let page = fetch(input, filter, firstChunkOf(input.record));
  for (;;) {
    const { records, complete } = await page;
    const last = records.at(-1);
    const more = !complete && last !== undefined && size + sum(records) < meta.size;
    if (more) page = fetch(input, filter, last.sequence + 1);
    for (const { data } of records) {
      size += data.length;
      if (size > meta.size) throw await broken(input);
      hash.update(data);
      yield data;
    }
    if (!more) break;
  }
  const digest = decodeObjectDigest(meta.digest);
  if (size !== meta.size || digest === undefined || !port.equal(hash.digest(), digest))
    throw await broken(input);
}

/** A failure of a page is met when it is awaited, not before. */
function fetch({ reader, options }: BytesInput, filter: string, from: number): Promise<Page> {
  const page = reader
    .page({ filter, from, limit: pageLimit, maxBytes: pageBytes }, options)
    .then((result) => result.orThrow());
  page.catch(() => {});
  return page;
}

function sum(records: readonly StoredRecord[]): number {
  return records.reduce((bytes, { data }) => bytes + data.length, 0);
}

/** Chunks are missing or wrong: because the object is no longer this one, or because it is damaged. */
async function broken({ metas, meta, options }: BytesInput): Promise<StoreError> {
  const now: FoundMeta = await metas.find(meta.key, options);
  const same = now.kind === "object" && now.meta.chunksId === meta.chunksId;
  return new StoreError({ reason: same ? "corrupt" : "replaced", key: meta.key });
}
