import type { Port } from "../port/port.ts";
import { type MerkleProof, merkleNode } from "./merkle.ts";

/**
 * What is known of one tree: every hash that led to its root. Two different hashes never lead to one root, so that a
 * hash beside a known path is as certain as the path, and the next leaf needs to be followed only up to something
 * known: its events cost about one hash each in place of six.
 */
export class KnownTree {
  readonly size: number;
  readonly root: Uint8Array;
  /** Hashes by level and position. */
  readonly #known = new Map<number, Uint8Array>();

  constructor(size: number, root: Uint8Array) {
    this.size = size;
    this.root = root;
  }

  /** Whether the leaf, with its path, leads to the root. A path is followed no further than needed. */
  proves(port: Port, leaf: Uint8Array, { size, index, path }: MerkleProof): boolean {
    if (size !== this.size || !(index >= 0 && index < size)) return false;
    const found: [number, Uint8Array][] = [];
    let hash = leaf;
    let used = 0;
    let at = index;
    let width = size;
    for (let level = 0; ; level += 1) {
      const known = width === 1 ? this.root : this.#known.get(placeOf(level, at));
      if (known !== undefined) {
        if (!port.equal(known, hash)) return false;
        for (const [place, each] of found) this.#known.set(place, each);
        return true;
      }
      found.push([placeOf(level, at), hash]);
      if ((at ^ 1) < width) {
        const sibling = path[used];
        if (sibling === undefined) return false;
        used += 1;
        found.push([placeOf(level, at ^ 1), sibling]);
        hash = at % 2 === 1 ? merkleNode(port, sibling, hash) : merkleNode(port, hash, sibling);
      }
      at >>= 1;
      width = (width + 1) >> 1;
    }
  }
}

function placeOf(level: number, index: number): number {
  return level * 64 + index;
}
