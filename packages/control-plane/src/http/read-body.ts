const bodyLimit = 1024 * 1024;

/** The raw bytes of a request's body; `undefined` when it is larger than 1 MiB, of which no more is read. */
export async function readBody(request: Request): Promise<Uint8Array | undefined> {
  const announced = Number(request.headers.get("content-length") ?? "0");
  if (announced > bodyLimit) return undefined;
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks, length);
    length += value.length;
    if (length > bodyLimit) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
}
