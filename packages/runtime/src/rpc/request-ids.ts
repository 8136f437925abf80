import type { Port } from "@trellis/protocol";

/**
 * Request ids of one connection: 8 random bytes, then a counter. The counter doubles as the key of the map of
 * pending calls, so that a reply is matched by a number and checked by its bytes.
 */
export class RequestIds {
  readonly #prefix: Uint8Array;
  #next = 0;

  constructor(port: Port) {
    this.#prefix = port.random(8);
  }

  next(): { sequence: number; requestId: Uint8Array } {
    this.#next += 1;
    const sequence = this.#next;
    const requestId = new Uint8Array(16);
    requestId.set(this.#prefix);
    writeSequence(requestId, sequence);
    return { sequence, requestId };
  }
}

/** The counter part of a request id. */
export function sequenceOf(requestId: Uint8Array): number {
  const at = 8;
  let value = 0;
  for (let index = at; index < at + 8; index += 1) value = value * 256 + (requestId[index] ?? 0);
  return value;
}

function writeSequence(requestId: Uint8Array, sequence: number): void {
  let rest = sequence;
  for (let index = 15; index >= 8; index -= 1) {
    requestId[index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return false;
  return true;
}
