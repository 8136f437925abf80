import { storeFailure } from "./store-failure.ts";

/** The pieces as a web stream, which asks for a piece when it is read. */
export function streamOf(
  pieces: AsyncGenerator<Uint8Array, void, undefined>,
  key: string,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await pieces.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (thrown) {
          controller.error(storeFailure(thrown, key));
        }
      },
      async cancel() {
        await pieces.return();
      },
    },
    { highWaterMark: 0 },
  );
}

/** All pieces in one array. */
export async function bytesOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    all.push(piece);
    size += piece.length;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
