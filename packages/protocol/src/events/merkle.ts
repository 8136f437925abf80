import type { Port } from "../port/port.ts";

// The tree of RFC 6962, section 2.1, over hashes as base64url text: leaves and inner nodes are hashed behind different
// labels, so that no inner node can be passed off as a leaf; an odd node at the end of a level goes up as it is.

export const EVENT_NODE_LABEL = "trellis.event-node.v1";

/** Most leaves of one tree: a path is then at most six hashes long. */
export const MAX_MERKLE_LEAVES = 64;

/** The hash of an inner node; both hashes have 43 characters. */
export function merkleNode(port: Port, left: string, right: string): string {
  return port.sha256Text(`${EVENT_NODE_LABEL}\n${left}${right}`);
}

/** A tree over 1 to 64 leaf hashes. */
export interface MerkleTree {
  readonly root: string;
  readonly size: number;
  /** The levels from the leaves up; the last one is the root alone. */
  readonly levels: readonly (readonly string[])[];
}

/** Builds the tree over leaf hashes. */
export function merkleTree(port: Port, leaves: readonly string[]): MerkleTree {
  if (leaves.length === 0 || leaves.length > MAX_MERKLE_LEAVES) {
    throw new RangeError(`A tree has 1 to ${MAX_MERKLE_LEAVES} leaves.`);
  }
  const levels: (readonly string[])[] = [leaves];
  let level = leaves;
  while (level.length > 1) {
    const above: string[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index], level[index + 1]];
      if (left === undefined) break;
      above.push(right === undefined ? left : merkleNode(port, left, right));
    }
    levels.push(above);
    level = above;
  }
  return { root: level[0] ?? "", size: leaves.length, levels };
}

/** Characters of a hash. */
const HASH_TEXT = 43;
const PATH = /^[A-Za-z0-9_-]{43}(?:\.[A-Za-z0-9_-]{43})*$/;

/** The hashes that lead from a leaf to the root, from below, joined by dots. */
export function merklePath({ size, levels }: MerkleTree, leaf: number): string {
  let path = "";
  let index = leaf;
  let width = size;
  for (let level = 0; width > 1; level += 1) {
    const sibling = levels[level]?.[index ^ 1];
    if (sibling !== undefined) path = path === "" ? sibling : `${path}.${sibling}`;
    index >>= 1;
    width = (width + 1) >> 1;
  }
  return path;
}

/** How many hashes lead from a leaf to the root. */
export function merklePathLength(size: number, leaf: number): number {
  let length = 0;
  let index = leaf;
  for (let width = size; width > 1; width = (width + 1) >> 1) {
    if ((index ^ 1) < width) length += 1;
    index >>= 1;
  }
  return length;
}

/** Whether a text has the form of a path of so many hashes. */
export function isMerklePath(path: string, length: number): boolean {
  return hasPathLength(path, length) && (length === 0 || PATH.test(path));
}

/** Whether a text has room for so many hashes, whatever it says in their places. */
export function hasPathLength(path: string, length: number): boolean {
  return path.length === Math.max(0, length * (HASH_TEXT + 1) - 1);
}

/** A hash of a path, counted from the leaf. */
export function merkleStep(path: string, step: number): string {
  const start = step * (HASH_TEXT + 1);
  return path.slice(start, start + HASH_TEXT);
}

/** What proves that a leaf is in a tree. */
export interface MerkleProof {
  readonly size: number;
  readonly index: number;
  /** As {@link merklePath} writes it. */
  readonly path: string;
}

/** The root that a leaf hash and its path lead to; `undefined` when the path does not fit size and index. */
export function merkleRoot(port: Port, leaf: string, proof: MerkleProof): string | undefined {
  const { size, path } = proof;
  let { index } = proof;
  if (!(size >= 1 && size <= MAX_MERKLE_LEAVES && index >= 0 && index < size)) return undefined;
  if (!hasPathLength(path, merklePathLength(size, index))) return undefined;
  let hash = leaf;
  let used = 0;
  for (let width = size; width > 1; width = (width + 1) >> 1) {
    if ((index ^ 1) < width) {
      const sibling = merkleStep(path, used);
      used += 1;
      hash = index % 2 === 1 ? merkleNode(port, sibling, hash) : merkleNode(port, hash, sibling);
    }
    index >>= 1;
  }
  return hash;
}
