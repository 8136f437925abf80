import { decodeStoreKey, storeChunkPrefix, storeMetaPrefix, storeStreamName } from "@trellis/protocol";
import type { BrokerRequests, RequestLink } from "../jetstream/broker-requests.ts";
import { StreamFollower } from "../jetstream/stream-follower.ts";
import { purgeSubject, subjectsOf } from "../jetstream/stream-purge.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import type { ObjectMetas } from "./object-metas.ts";

export interface SweepInput {
  readonly link: RequestLink;
  readonly requests: BrokerRequests;
  readonly metas: ObjectMetas;
  readonly name: string;
  /** Chunks that are younger belong to a put that is under way. */
  readonly olderThanMs: number;
  /** The server's time, ms since 1970. */
  readonly now: number;
}

const options = { timeoutMs: 10_000 };

/**
 * Removes the chunks that no object has: what a process left behind that was killed in the middle of a put. Gives how
 * many puts those were. Safe beside puts and other sweeps: a put that is under way adds chunks, which are young.
 */
export async function sweepOrphans(input: SweepInput): Promise<number> {
  const { requests, name, now, olderThanMs } = input;
  const stream = storeStreamName(name);
  const filter = `${storeChunkPrefix(name)}.>`;
  // Chunks first: what became an object in between is found among the objects.
  const chunks = await subjectsOf(requests, { stream, filter }, options);
  if (chunks.length === 0) return 0;
  const owned = await ownedChunks(input);
  const reader = new StreamReader(requests, stream);
  let removed = 0;
  for (const subject of chunks) {
    if (owned.has(subject)) continue;
    const last = (await reader.last(subject, options)).orThrow();
    if (last === undefined || now - last.storedAt.getTime() < olderThanMs) continue;
    await purgeSubject(requests, { stream, filter: subject }, options);
    removed += 1;
  }
  return removed;
}

async function ownedChunks({ link, requests, metas, name }: SweepInput): Promise<ReadonlySet<string>> {
  const mark = `${storeMetaPrefix(name)}.`;
  const owned = new Set<string>();
  const follower = new StreamFollower({
    link,
    reader: new StreamReader(requests, storeStreamName(name)),
    filter: `${mark}>`,
    live: undefined,
    contiguous: false,
    ages: true,
  });
  for (;;) {
    const followed = await follower.next();
    if (followed.kind === "failed") throw followed.error;
    if (followed.kind === "end" || followed.kind === "replaced") return owned;
    if (followed.kind === "ready") continue;
    const key = decodeStoreKey(followed.record.subject.slice(mark.length));
    const found = key === undefined ? undefined : metas.read(key, followed.record);
    if (found?.kind === "object") owned.add(`${storeChunkPrefix(name)}.${found.meta.chunksId}`);
    // Something that we cannot read may own chunks that we cannot name: then nothing is removed.
    else if (found?.kind !== "deleted")
      throw new Error("A description in the store cannot be read; nothing is swept.");
  }
}
