// Big-endian integers written by hand: no DataView per frame, and u64 fields stay plain numbers.

const TWO_32 = 0x1_0000_0000;

/** Writes an unsigned 16-bit integer. */
export function writeU16(into: Uint8Array, at: number, value: number): void {
  into[at] = value >>> 8;
  into[at + 1] = value;
}

/** Reads an unsigned 16-bit integer; bytes beyond the end count as zero. */
export function readU16(from: Uint8Array, at: number): number {
  return ((from[at] ?? 0) << 8) | (from[at + 1] ?? 0);
}

/** Writes an unsigned 32-bit integer. */
export function writeU32(into: Uint8Array, at: number, value: number): void {
  into[at] = value >>> 24;
  into[at + 1] = value >>> 16;
  into[at + 2] = value >>> 8;
  into[at + 3] = value;
}

/** Reads an unsigned 32-bit integer; bytes beyond the end count as zero. */
export function readU32(from: Uint8Array, at: number): number {
  return (
    (((from[at] ?? 0) << 24) |
      ((from[at + 1] ?? 0) << 16) |
      ((from[at + 2] ?? 0) << 8) |
      (from[at + 3] ?? 0)) >>>
    0
  );
}

/** Writes a non-negative safe integer as unsigned 64-bit. */
export function writeU64(into: Uint8Array, at: number, value: number): void {
  writeU32(into, at, Math.floor(value / TWO_32));
  writeU32(into, at + 4, value % TWO_32);
}

/** Reads an unsigned 64-bit integer; `undefined` when it is above `Number.MAX_SAFE_INTEGER`. */
export function readU64(from: Uint8Array, at: number): number | undefined {
  const high = readU32(from, at);
  return high > 0x1f_ffff ? undefined : high * TWO_32 + readU32(from, at + 4);
}
