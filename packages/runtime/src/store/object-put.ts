import {
  CancelledError,
  encodeObjectDigest,
  type ObjectMeta,
  type Port,
  StoreError,
  storeChunkPrefix,
  toBase64Url,
} from "@trellis/protocol";
import type { RequestOptions } from "../jetstream/broker-request.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { purgeSubject } from "../jetstream/stream-purge.ts";
import { within } from "../lifecycle/within.ts";
import { ChunkUpload } from "./chunk-upload.ts";
import type { FoundMeta, ObjectMetas } from "./object-metas.ts";
import type { Pieces } from "./object-source.ts";

export interface PutInput {
  readonly requests: BrokerRequests;
  readonly port: Port;
  readonly metas: ObjectMetas;
  readonly stream: string;
  readonly name: string;
  /** Largest object, bytes. */
  readonly maxBytes: number | undefined;
  readonly chunkBytes: number;
}

export interface PutRequest {
  readonly key: string;
  readonly pieces: Pieces;
  readonly contentType: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly options: RequestOptions;
  /** Only where there is no object. */
  readonly create: boolean;
}

/** Clearing away takes no longer than this from who waits for the put. */
const cleanUpMs = 2_000;
const purgeTimeoutMs = 30_000;

/**
 * Stores objects: first the chunks, under a name that nobody knows yet, then the description that makes them an object,
 * then the chunks of what it replaced go. So at every moment there is the old object or the new one, whole; what
 * fails before the description is stored leaves chunks at most, and they are cleared away.
 */
export class ObjectPut {
  readonly #input: PutInput;

  constructor(input: PutInput) {
    this.#input = input;
  }

  /** `cleared` resolves when what it took the place of is gone. */
  async run(request: PutRequest): Promise<{ meta: ObjectMeta; sequence: number; cleared: Promise<void> }> {
    const { key, options, create } = request;
    const accepts = (found: FoundMeta) => {
      if (create && found.kind !== "none" && found.kind !== "deleted")
        throw new StoreError({ reason: "exists", key });
    };
    const before = this.#input.metas.find(key, options);
    before.catch(() => {}); // met below
    const chunksId = toBase64Url(this.#input.port.random(18));
    const upload = new ChunkUpload({
      requests: this.#input.requests,
      subject: this.#chunks(chunksId),
      chunkBytes: this.#input.chunkBytes,
      // Without the signal: what is on its way is waited for before it is cleared away.
      timeoutMs: options.timeoutMs,
    });
    try {
      // Not the proof, but it spares the upload.
      if (create) accepts(await this.#whenOpen(request, before));
      const meta = await this.#upload(request, upload, chunksId);
      const { sequence, replaced } = await this.#input.metas.write(meta, {
        ...options,
        known: await before,
        accepts,
      });
      const cleared = replaced.kind === "object" ? this.#clear(replaced.meta.chunksId) : Promise.resolve();
      return { meta, sequence, cleared };
    } catch (error) {
      request.pieces.cancel(error);
      await within(this.#cleanUp(upload, { key, chunksId }), cleanUpMs);
      throw error;
    }
  }

  /** Deletes an object; says whether there was one. */
  async remove(key: string, options: RequestOptions): Promise<boolean> {
    const { metas, port } = this.#input;
    const found = await metas.find(key, options);
    if (found.kind === "none" || found.kind === "deleted") return false;
    const chunksId = toBase64Url(port.random(18));
    const common = { key, chunksId, size: 0, chunks: 0, digest: "", contentType: undefined, metadata: {} };
    const { replaced } = await metas.write({ ...common, deleted: true }, { ...options, accepts: () => {} });
    if (replaced.kind === "object") await this.#clear(replaced.meta.chunksId);
    return replaced.kind !== "deleted";
  }

  #chunks(chunksId: string): string {
    return `${storeChunkPrefix(this.#input.name)}.${chunksId}`;
  }

  async #upload(request: PutRequest, upload: ChunkUpload, chunksId: string) {
    const { port, maxBytes, chunkBytes } = this.#input;
    const hash = port.sha256Stream();
    let size = 0;
    let array = upload.take(request.pieces.size);
    let filled = 0;
    const flush = async () => {
      hash.update(array.subarray(0, filled));
      await this.#whenOpen(request, upload.send(array, filled));
      array = upload.take();
      filled = 0;
    };
    for (;;) {
      const piece = await this.#whenOpen(request, request.pieces.next());
      if (piece === undefined) break;
      size += piece.length;
      if (maxBytes !== undefined && size > maxBytes) throw tooLarge(request.key, maxBytes);
      for (let at = 0; at < piece.length; ) {
        const taken = Math.min(piece.length - at, array.length - filled);
        array.set(piece.subarray(at, at + taken), filled);
        at += taken;
        filled += taken;
        if (filled === array.length) await flush();
      }
    }
    if (filled > 0) await flush();
    await this.#whenOpen(request, upload.finish());
    const { key, contentType, metadata } = request;
    const digest = encodeObjectDigest(hash.digest());
    const { chunks, firstSequence: firstChunk } = upload;
    const common = { key, chunksId, size, chunks, deleted: false, digest, contentType, metadata };
    return { ...common, firstChunk, chunkBytes };
  }

  /** The promise, or the abort: a source may never give another piece. */
  async #whenOpen<T>({ options: { signal } }: PutRequest, promise: Promise<T>): Promise<T> {
    if (signal === undefined) return promise;
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(new CancelledError({ reason: "aborted", cause: signal.reason }));
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Removes the chunks of a put that came to nothing, unless its description is there after all. */
  async #cleanUp(upload: ChunkUpload, { key, chunksId }: { key: string; chunksId: string }): Promise<void> {
    if (upload.chunks === 0) return;
    // What is on its way arrives first: else it would come after the purge.
    await upload.idle();
    const found = await this.#input.metas.find(key, { timeoutMs: purgeTimeoutMs });
    if (found.kind === "object" && found.meta.chunksId === chunksId) return;
    await this.#clear(chunksId);
  }

  /** Removes chunks that belong to nothing. Where that fails they are orphans, which the sweep removes later. */
  async #clear(chunksId: string): Promise<void> {
    if (chunksId === "") return;
    const { requests, stream } = this.#input;
    const where = { stream, filter: this.#chunks(chunksId) };
    await purgeSubject(requests, where, { timeoutMs: purgeTimeoutMs }).catch(() => {});
  }
}

function tooLarge(key: string, maxBytes: number): StoreError {
  return new StoreError({
    reason: "too_large",
    key,
    message: `The object is larger than the store allows (${maxBytes} bytes): ${JSON.stringify(key)}`,
    details: { maxBytes },
  });
}
