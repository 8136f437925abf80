import { createHash } from "node:crypto";
import { newId } from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { ObjectStore, StoreFailure, StoreInfo } from "@trellis/runtime";
import type { Clock } from "@trellis/runtime/node";
import { nodePort } from "@trellis/runtime/node";
import { CHUNK_BYTES, ResourceRefused, TransferLost } from "./api.ts";

type Lost = InstanceType<typeof TransferLost>;
type Refused = InstanceType<typeof ResourceRefused>;

/** A transfer that nobody goes on with is given up, ms. */
const idleMs = 60_000;
/** Transfers at a time: each holds a few pieces of its object. */
const most = 32;

interface Download {
  readonly kind: "download";
  readonly info: StoreInfo;
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  offset: number;
  /** Read, and not yet given. */
  rest: Uint8Array;
}

interface Upload {
  readonly kind: "upload";
  readonly pipe: Pipe;
  readonly stored: PromiseLike<Result<StoreInfo, StoreFailure>>;
  readonly hash: ReturnType<typeof createHash>;
  offset: number;
}

type Transfer = (Download | Upload) & { usedAt: number };

/**
 * Objects on their way, piece by piece, each by a call of its own. They live in this process: a piece that comes to
 * another one, or too late, finds nothing, and whoever sent it begins again. Nothing of an upload is visible before its
 * last piece.
 */
export class ObjectTransfers {
  readonly #clock: Clock;
  readonly #transfers = new Map<string, Transfer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async begin(store: ObjectStore, key: string): Promise<Result<string | undefined, StoreFailure>> {
    const found = await store.get(key);
    if (found.isErr()) return err(found.error);
    if (found.value === undefined) return ok(undefined);
    const { info } = found.value;
    const reader = found.value.stream().getReader();
    return ok(this.#add({ kind: "download", info, reader, offset: 0, rest: new Uint8Array() }));
  }

  async read(
    id: string,
    offset: number,
  ): Promise<Result<{ data: Uint8Array; done: boolean; info: StoreInfo }, Lost | Refused>> {
    const transfer = this.#use(id, "download", offset);
    if (transfer === undefined) return err(new TransferLost());
    const pieces = [transfer.rest];
    let size = transfer.rest.length;
    try {
      while (size < CHUNK_BYTES) {
        const { done, value } = await transfer.reader.read();
        if (done) break;
        pieces.push(value);
        size += value.length;
      }
    } catch (error) {
      this.#transfers.delete(id);
      const problem = error instanceof Error ? error.message : "The object could not be read.";
      return err(new ResourceRefused({ data: { problem } }));
    }
    const bytes = Buffer.concat(pieces);
    const data = bytes.subarray(0, CHUNK_BYTES);
    transfer.rest = Uint8Array.from(bytes.subarray(CHUNK_BYTES));
    transfer.offset += data.length;
    const done = transfer.offset >= transfer.info.size;
    if (done) this.#transfers.delete(id);
    return ok({ data, done, info: transfer.info });
  }

  beginUpload(store: ObjectStore, key: string, contentType: string | undefined): string {
    const pipe = new Pipe();
    const stored = store.put(key, pipe, contentType === undefined ? {} : { contentType });
    return this.#add({ kind: "upload", pipe, stored, hash: createHash("sha256"), offset: 0 });
  }

  /** Takes a piece; with a digest it is the last one, and the object is there if that is the digest of all of it. */
  async write(
    id: string,
    piece: { offset: number; data: Uint8Array; digest: string | undefined },
  ): Promise<Result<{ received: number; info: StoreInfo | undefined }, Lost | Refused>> {
    const transfer = this.#use(id, "upload", piece.offset);
    if (transfer === undefined) return err(new TransferLost());
    const { pipe, hash, stored } = transfer;
    hash.update(piece.data);
    transfer.offset += piece.data.length;
    // A put that has failed reads no more: it is over, whatever is still sent.
    const over = await Promise.race([pipe.write(piece.data), stored]);
    if (over === undefined && piece.digest === undefined)
      return ok({ received: transfer.offset, info: undefined });
    this.#transfers.delete(id);
    const digest = `SHA-256=${hash.digest("base64url")}`;
    if (over === undefined) pipe.end(sameDigest(digest, piece.digest) ? undefined : new Error("digest"));
    const result = await stored;
    if (result.isOk()) return ok({ received: transfer.offset, info: result.value });
    const problem = pipe.broken
      ? "The bytes that came do not have the digest that was sent."
      : result.error.message;
    return err(new ResourceRefused({ data: { problem } }));
  }

  #add(transfer: Download | Upload): string {
    const now = this.#clock.monotonic();
    for (const [id, { usedAt }] of this.#transfers) if (now - usedAt > idleMs) this.#drop(id);
    const [oldest] = this.#transfers.keys();
    if (this.#transfers.size >= most && oldest !== undefined) this.#drop(oldest);
    const id = newId(nodePort, this.#clock.now());
    this.#transfers.set(id, { ...transfer, usedAt: now });
    return id;
  }

  #use<K extends Transfer["kind"]>(
    id: string,
    kind: K,
    offset: number,
  ): Extract<Transfer, { kind: K }> | undefined {
    const transfer = this.#transfers.get(id);
    if (transfer?.kind !== kind || transfer.offset !== offset) return undefined;
    transfer.usedAt = this.#clock.monotonic();
    // The newest is last: what is given up first is what was left alone longest.
    this.#transfers.delete(id);
    this.#transfers.set(id, transfer);
    return transfer as Extract<Transfer, { kind: K }>;
  }

  #drop(id: string): void {
    const transfer = this.#transfers.get(id);
    this.#transfers.delete(id);
    if (transfer?.kind === "download") void transfer.reader.cancel().catch(() => undefined);
    if (transfer?.kind === "upload") transfer.pipe.end(new Error("The transfer was given up."));
  }
}

/** Padding and case of the prefix are a matter of taste. */
function sameDigest(ours: string, theirs: string | undefined): boolean {
  return theirs?.replace(/=+$/, "") === ours;
}

/** Pieces from one who writes to one who reads, one at a time: writing waits until the piece before was taken. */
class Pipe implements AsyncIterable<Uint8Array> {
  #next: ((result: IteratorResult<Uint8Array, undefined>) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;
  #piece: Uint8Array | undefined;
  #taken: (() => void) | undefined;
  #ended = false;
  #error: Error | undefined;

  get broken(): boolean {
    return this.#error?.message === "digest";
  }

  write(piece: Uint8Array): Promise<undefined> {
    return new Promise((resolve) => {
      if (this.#next !== undefined) {
        this.#next({ done: false, value: piece });
        this.#next = undefined;
        resolve(undefined);
        return;
      }
      this.#piece = piece;
      this.#taken = () => resolve(undefined);
    });
  }

  end(error?: Error): void {
    this.#ended = true;
    this.#error = error;
    if (error !== undefined) this.#fail?.(error);
    else this.#next?.({ done: true, value: undefined });
    this.#next = undefined;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return {
      next: () =>
        new Promise((resolve, reject) => {
          if (this.#piece !== undefined) {
            resolve({ done: false, value: this.#piece });
            this.#piece = undefined;
            this.#taken?.();
          } else if (this.#error !== undefined) reject(this.#error);
          else if (this.#ended) resolve({ done: true, value: undefined });
          else {
            this.#next = resolve;
            this.#fail = reject;
          }
        }),
    };
  }
}
