const SLAB = 64 * 1024;
const LARGEST = 8 * 1024;

let slab = new ArrayBuffer(0);
let used = 0;

/**
 * A zeroed array that shares its buffer with others. An array of its own costs several times as much, which counts
 * when every frame needs one. Never hand out its `buffer`.
 */
export function allocate(length: number): Uint8Array {
  if (length > LARGEST) return new Uint8Array(length);
  if (used + length > slab.byteLength) {
    slab = new ArrayBuffer(SLAB);
    used = 0;
  }
  const bytes = new Uint8Array(slab, used, length);
  used += length;
  return bytes;
}
