import { allocate } from "../bytes/allocate.ts";
import type { Port } from "../port/port.ts";

// The tree of RFC 6962, section 2.1: leaves and inner nodes are hashed behind different prefixes, so that no inner
// node can be passed off as a leaf; an odd node at the end of a level goes up as it is.

const LEAF = 0;
const NODE = 1;
const HASH = 32;

/** Most leaves of one tree: a path is then at most six hashes long. */
export const MAX_MERKLE_LEAVES = 64;

/** The hash of a leaf's data. */
export function merkleLeaf(port: Port, data: Uint8Array): Uint8Array {
  const bytes = allocate(1 + data.length);
  bytes[0] = LEAF;
  bytes.set(data, 1);
  return port.sha256(bytes);
}

/** The hash of an inner node. */
export function merkleNode(port: Port, left: Uint8Array, right: Uint8Array): Uint8Array {
  const bytes = allocate(1 + 2 * HASH);
  bytes[0] = NODE;
  bytes.set(left, 1);
  bytes.set(right, 1 + HASH);
  return port.sha256(bytes);
}

/** A tree over 1 to 64 leaf hashes. */
export interface MerkleTree {
  readonly root: Uint8Array;
  readonly size: number;
  /** The levels from the leaves up; the last one is the root alone. */
  readonly levels: readonly (readonly Uint8Array[])[];
}

/** Builds the tree over leaf hashes. */
export function merkleTree(port: Port, leaves: readonly Uint8Array[]): MerkleTree {
  if (leaves.length === 0 || leaves.length > MAX_MERKLE_LEAVES) {
    throw new RangeError(`A tree has 1 to ${MAX_MERKLE_LEAVES} leaves.`);
  }
  const levels: (readonly Uint8Array[])[] = [leaves];
  let level = leaves;
  while (level.length > 1) {
    const above: Uint8Array[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index], level[index + 1]];
      if (left === undefined) break;
      above.push(right === undefined ? left : merkleNode(port, left, right));
    }
    levels.push(above);
    level = above;
  }
  return { root: level[0] ?? new Uint8Array(HASH), size: leaves.length, levels };
}

/** For a leaf, the positions in the tree of the hashes that lead from it to the root, from below. */
export function merklePath(size: number, leaf: number): readonly { level: number; index: number }[] {
  const path: { level: number; index: number }[] = [];
  let index = leaf;
  let width = size;
  for (let level = 0; width > 1; level += 1) {
    const sibling = index ^ 1;
    if (sibling < width) path.push({ level, index: sibling });
    index >>= 1;
    width = (width + 1) >> 1;
  }
  return path;
}

/** What proves that a leaf is in a tree. */
export interface MerkleProof {
  readonly size: number;
  readonly index: number;
  readonly path: readonly Uint8Array[];
}

/** The root that a leaf hash and its path lead to; `undefined` when the path does not fit size and index. */
export function merkleRoot(port: Port, leaf: Uint8Array, proof: MerkleProof): Uint8Array | undefined {
  const { size, path } = proof;
  let { index } = proof;
  if (!(size >= 1 && size <= MAX_MERKLE_LEAVES && index >= 0 && index < size)) return undefined;
  let width = size;
  let hash = leaf;
  let used = 0;
  while (width > 1) {
    if ((index ^ 1) < width) {
      const sibling = path[used];
      if (sibling === undefined) return undefined;
      used += 1;
      hash = index % 2 === 1 ? merkleNode(port, sibling, hash) : merkleNode(port, hash, sibling);
    }
    index >>= 1;
    width = (width + 1) >> 1;
  }
  return used === path.length ? hash : undefined;
}
