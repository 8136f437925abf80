import {
  decodeJsonBytes,
  decodeObjectMeta,
  encodeObjectMeta,
  encodeStoreKey,
  type ObjectMeta,
  type Port,
  StoreError,
  storeMetaPrefix,
} from "@trellis/protocol";
import type { RequestOptions } from "../jetstream/broker-request.ts";
import {
  type JetStreamPublisher,
  type PubAck,
  PublishError,
  WRONG_LAST_SEQUENCE,
} from "../jetstream/publisher.ts";
import type { StoredRecord } from "../jetstream/stored-record.ts";
import type { StreamReader } from "../jetstream/stream-reader.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import type { StoreInfo } from "./store.ts";

/** What stands in the place of an object's description. */
export type FoundMeta =
  | { readonly kind: "none" }
  | { readonly kind: "object"; readonly meta: ObjectMeta; readonly record: StoredRecord }
  /** Deleted; chunks of it should be gone. */
  | { readonly kind: "deleted"; readonly chunksId: string; readonly record: StoredRecord }
  /** A link, or damaged: it has no bytes that could be found. */
  | { readonly kind: "unreadable"; readonly record: StoredRecord };

/** Header with the sequence of an object's first chunk: where a reader begins to look. */
const FIRST_CHUNK = "Trellis-First-Chunk";

const encoder = new TextEncoder();

/** The descriptions of a store's objects: an object is what its description says, from the moment that it says so. */
export class ObjectMetas {
  readonly #name: string;
  readonly #port: Port;
  readonly #reader: StreamReader;
  readonly #publisher: JetStreamPublisher;

  constructor(input: { name: string; port: Port; reader: StreamReader; publisher: JetStreamPublisher }) {
    this.#name = input.name;
    this.#port = input.port;
    this.#reader = input.reader;
    this.#publisher = input.publisher;
  }

  subject(key: string): string {
    return `${storeMetaPrefix(this.#name)}.${encodeStoreKey(key)}`;
  }

  async find(key: string, options: RequestOptions): Promise<FoundMeta> {
    const found = (await this.#reader.last(this.subject(key), options)).orThrow();
    return found === undefined ? { kind: "none" } : this.read(key, found);
  }

  read(key: string, record: StoredRecord): FoundMeta {
    if (record.data.length === 0) return { kind: "deleted", chunksId: "", record };
    const json = decodeJsonBytes(this.#port, record.data);
    const meta = json.ok ? decodeObjectMeta(json.value, key) : undefined;
    if (meta === undefined || "link" in meta) return { kind: "unreadable", record };
    if (meta.deleted) return { kind: "deleted", chunksId: meta.chunksId, record };
    return { kind: "object", meta, record };
  }

  /**
   * Puts a description in the place of whatever is there, if `accepts` it, and gives what it took the place of: its
   * chunks are nobody's any more. By compare-and-set, so that of two writers at once each knows whom it replaced.
   * `known` is what was found there a while ago: it spares a read, and does no harm where it has changed.
   */
  async write(
    meta: ObjectMeta & { readonly firstChunk?: number | undefined; readonly chunkBytes?: number },
    options: RequestOptions & { readonly known?: FoundMeta; accepts(found: FoundMeta): void },
  ): Promise<{ sequence: number; replaced: FoundMeta }> {
    const deadline = Deadline.after(options.timeoutMs);
    const subject = this.subject(meta.key);
    const data = encoder.encode(encodeObjectMeta(this.#name, meta));
    let before: FoundMeta = { kind: "none" };
    let { known } = options;
    for (;;) {
      const rest = { timeoutMs: deadline.remaining(), signal: options.signal };
      const found = known ?? (await this.find(meta.key, rest));
      known = undefined;
      // Our own, of the attempt before, whose answer was lost.
      if (chunksIdOf(found) === meta.chunksId && "record" in found)
        return { sequence: found.record.sequence, replaced: before };
      options.accepts(found);
      const expected = found.kind === "none" ? 0 : found.record.sequence;
      const stored = await this.#store({ subject, data, meta }, { ...rest, expected });
      // Stored by the attempt before, and replaced by somebody else since.
      if (stored?.duplicate === true) return { sequence: stored.seq, replaced: before };
      if (stored !== undefined) return { sequence: stored.seq, replaced: found };
      before = found;
    }
  }

  /** `undefined` when somebody else was there first. */
  async #store(
    what: { subject: string; data: Uint8Array; meta: ObjectMeta & { firstChunk?: number | undefined } },
    options: RequestOptions & { expected: number },
  ): Promise<PubAck | undefined> {
    const { chunksId, firstChunk } = what.meta;
    try {
      return await this.#publisher.publish(what.subject, what.data, {
        timeoutMs: options.timeoutMs,
        signal: options.signal,
        headers: {
          // Earlier descriptions of the key go away.
          "Nats-Rollup": "sub",
          ...(firstChunk !== undefined && { [FIRST_CHUNK]: String(firstChunk) }),
        },
        // Should an answer be lost, the broker will not store it a second time, whatever has happened since.
        msgId: `${what.subject}.${chunksId}`,
        expectLastSubjectSequence: options.expected,
        repeatable: true,
      });
    } catch (error) {
      if (error instanceof PublishError && error.errCode === WRONG_LAST_SEQUENCE) return undefined;
      throw error;
    }
  }
}

function chunksIdOf(found: FoundMeta): string | undefined {
  if (found.kind === "object") return found.meta.chunksId;
  return found.kind === "deleted" ? found.chunksId : undefined;
}

/** From which sequence on an object's chunks are to be found. */
export function firstChunkOf(record: StoredRecord): number {
  const first = Number(record.get(FIRST_CHUNK) ?? 1);
  return Number.isSafeInteger(first) && first >= 1 ? first : 1;
}

export function infoOf(meta: ObjectMeta, updatedAt: Date): StoreInfo {
  const { key, size, digest, contentType, metadata } = meta;
  return { key, size, updatedAt, digest, contentType, metadata };
}

/** The object of a key, or nothing; an error where its description cannot be read. */
export function objectOf(
  key: string,
  found: FoundMeta,
): { readonly meta: ObjectMeta; readonly record: StoredRecord } | undefined {
  if (found.kind === "unreadable") throw new StoreError({ reason: "invalid_object", key });
  return found.kind === "object" ? found : undefined;
}
