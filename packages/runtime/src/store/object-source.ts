import { StoreError } from "@trellis/protocol";
import type { StoreSource } from "./store.ts";

/** The pieces of a source. An array is only good until the next piece is asked for. */
export interface Pieces {
  /** Bytes in all, where that is known before. */
  readonly size?: number;
  /** `undefined` at the end. */
  next(): Promise<Uint8Array | undefined>;
  /** Tells the source that no more is wanted. */
  cancel(reason: unknown): void;
}

/** Opens a source. Throws a `TypeError` at once for what is none. */
export function openSource(source: StoreSource): Pieces {
  if (source instanceof Uint8Array) return wholeBytes(source);
  if (source instanceof ArrayBuffer) return wholeBytes(new Uint8Array(source));
  if (isObject(source)) {
    if ("getReader" in source && typeof source.getReader === "function") return fromStream(source);
    if (Symbol.asyncIterator in source) return fromIterable(source as AsyncIterable<Uint8Array>);
    if ("stream" in source && typeof source.stream === "function") return fromStream(source.stream());
  }
  throw new TypeError(
    "An object is made from a Uint8Array, an ArrayBuffer, a Blob, a ReadableStream or an async iterable of Uint8Arrays.",
  );
}

function wholeBytes(bytes: Uint8Array): Pieces {
  let given = false;
  return {
    size: bytes.length,
    async next() {
      if (given) return undefined;
      given = true;
      return bytes;
    },
    cancel() {},
  };
}

function fromStream(stream: ReadableStream<Uint8Array>): Pieces {
  const reader = stream.getReader();
  return {
    async next() {
      const { value, done } = await fromOutside(() => reader.read());
      return done ? undefined : checked(value);
    },
    cancel(reason) {
      void reader.cancel(reason).catch(() => {});
    },
  };
}

function fromIterable(iterable: AsyncIterable<Uint8Array>): Pieces {
  const iterator = iterable[Symbol.asyncIterator]();
  return {
    async next() {
      const { value, done } = await fromOutside(() => iterator.next());
      return done === true ? undefined : checked(value);
    },
    cancel() {
      // A generator that waits would end only after its wait: nobody waits for that.
      void Promise.resolve(iterator.return?.()).catch(() => {});
    },
  };
}

function checked(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw failed(new TypeError("The source gave something that is no Uint8Array."));
}

async function fromOutside<T>(read: () => PromiseLike<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw failed(cause);
  }
}

function failed(cause: unknown): StoreError {
  const why = cause instanceof Error ? `: ${cause.message}` : "";
  return new StoreError({ reason: "source_failed", message: `The source of the object failed${why}`, cause });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
