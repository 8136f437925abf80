const BLOCK = 512;

/**
 * The content of the first regular file in a tar archive (not compressed) whose path ends with `/<name>`.
 * Only what release archives use: ustar headers, sizes in octal.
 */
export function extractFile(archive: Buffer, name: string): Buffer | undefined {
  let at = 0;
  while (at + BLOCK <= archive.length) {
    const header = archive.subarray(at, at + BLOCK);
    if (header[0] === 0) return undefined;
    const size = Number.parseInt(text(header, 124, 12), 8);
    if (!Number.isSafeInteger(size) || size < 0) return undefined;
    const start = at + BLOCK;
    const type = text(header, 156, 1);
    if ((type === "0" || type === "") && text(header, 0, 100).endsWith(`/${name}`)) {
      return start + size <= archive.length ? archive.subarray(start, start + size) : undefined;
    }
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
  return undefined;
}

function text(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field
    .subarray(0, end < 0 ? length : end)
    .toString("latin1")
    .trim();
}
