import type { Port } from "../port/port.ts";
import type { EventProof, ProofPlace } from "./event-proof.ts";
import { hasPathLength, MAX_MERKLE_LEAVES, merkleNode, merklePathLength, merkleStep } from "./merkle.ts";

/**
 * What is known of the tree under one root. The events of a tree come together, and each brings its path: whoever
 * keeps what they have in common needs about one hash for each further event, in place of six.
 *
 * Invariant: every hash in it leads to the root, whoever sent it. Whether the root is the publisher's is the
 * signature's answer, which is to be had once.
 */
export class EventTree {
  readonly root: string;
  readonly #port: Port;
  readonly #proof: EventProof;
  /** By place of their levels, from the leaves up. */
  readonly #nodes: (string | undefined)[];
  #found = 0;

  /** `root`: to which leaf and proof lead; see `eventRoot`. */
  constructor(port: Port, proof: EventProof, { root, leaf }: { root: string; leaf: string }) {
    this.#port = port;
    this.#proof = proof;
    this.root = root;
    let level = 0;
    for (let width = proof.size; width > 1; width = (width + 1) >> 1) level += 1;
    this.#nodes = Array.from({ length: level * MAX_MERKLE_LEAVES + 1 });
    this.#nodes[level * MAX_MERKLE_LEAVES] = root;
    this.holds(leaf, proof);
  }

  /** As many leaves as it has were found in it: as a rule each of them, and no more will come. */
  get isComplete(): boolean {
    return this.#found >= this.#proof.size;
  }

  /** The proof of another event of this tree. */
  read({ index, path }: ProofPlace): EventProof | undefined {
    const { authorization, signedAt, size, signature } = this.#proof;
    if (index >= size || !hasPathLength(path, merklePathLength(size, index))) return undefined;
    return { authorization, signedAt, size, signature, index, path };
  }

  /** Whether the leaf is in this tree. What its path teaches is kept. */
  holds(leaf: string, { index, path }: Pick<EventProof, "index" | "path">): boolean {
    let [hash, place, width] = [leaf, index, this.#proof.size];
    let [learned, used] = [0, 0];
    for (let level = 0; ; level += MAX_MERKLE_LEAVES) {
      const known = this.#nodes[level + place];
      if (known !== undefined) {
        if (known !== hash) return false;
        for (let at = 0; at < learned; at += 1) this.#nodes[learnedAt[at] ?? 0] = learnedHashes[at];
        this.#found += 1;
        return true;
      }
      if (width <= 1) return false;
      learnedAt[learned] = level + place;
      learnedHashes[learned] = hash;
      learned += 1;
      const beside = place ^ 1;
      if (beside < width) {
        const sibling = this.#nodes[level + beside] ?? merkleStep(path, used);
        learnedAt[learned] = level + beside;
        learnedHashes[learned] = sibling;
        learned += 1;
        used += 1;
        hash =
          place % 2 === 1 ? merkleNode(this.#port, sibling, hash) : merkleNode(this.#port, hash, sibling);
      }
      place >>= 1;
      width = (width + 1) >> 1;
    }
  }
}

/** What one path teaches, until it turns out to be true: two hashes of each level at the most. */
const learnedAt: number[] = [];
const learnedHashes: string[] = [];
