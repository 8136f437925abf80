import type { Port } from "../port/port.ts";
import { type EventProof, readPath, readWhole } from "./event-proof.ts";
import { merkleNode, merklePathLength } from "./merkle.ts";

const WIDTH = 64;

/** Names the tree of a proof, from its header: everything in it but the event's own place. */
export function eventTreeKey(proof: string): string | undefined {
  const [version, authorization, signedAt, size, , signature, path] = proof.split(" ");
  return version === "1" && path !== undefined
    ? `${authorization} ${signedAt} ${size} ${signature}`
    : undefined;
}

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
  readonly #nodes = new Map<number, string>();

  /** `root`: to which leaf and proof lead; see `eventRoot`. */
  constructor(port: Port, proof: EventProof, { root, leaf }: { root: string; leaf: string }) {
    this.#port = port;
    this.#proof = proof;
    this.root = root;
    let level = 0;
    for (let width = proof.size; width > 1; width = (width + 1) >> 1) level += 1;
    this.#nodes.set(level * WIDTH, root);
    this.holds(leaf, proof);
  }

  /** The proof of another event of this tree. */
  read(text: string): EventProof | undefined {
    const [, , , , indexText = "", , pathText = ""] = text.split(" ");
    const { authorization, signedAt, size, signature } = this.#proof;
    const index = readWhole(indexText);
    if (index === undefined || index >= size) return undefined;
    const path = readPath(pathText, merklePathLength(size, index));
    return path === undefined ? undefined : { authorization, signedAt, size, index, signature, path };
  }

  /** Whether the leaf is in this tree. What its path teaches is kept. */
  holds(leaf: string, proof: EventProof): boolean {
    const learned: [place: number, hash: string][] = [];
    let { index } = proof;
    let width = proof.size;
    let hash = leaf;
    let used = 0;
    for (let level = 0; ; level += 1) {
      const known = this.#nodes.get(level * WIDTH + index);
      if (known !== undefined) {
        if (known !== hash) return false;
        for (const [place, found] of learned) this.#nodes.set(place, found);
        return true;
      }
      if (width <= 1) return false;
      learned.push([level * WIDTH + index, hash]);
      const beside = index ^ 1;
      if (beside < width) {
        const place = level * WIDTH + beside;
        const sibling = this.#nodes.get(place) ?? proof.path[used];
        used += 1;
        if (sibling === undefined) return false;
        learned.push([place, sibling]);
        hash =
          index % 2 === 1 ? merkleNode(this.#port, sibling, hash) : merkleNode(this.#port, hash, sibling);
      }
      index >>= 1;
      width = (width + 1) >> 1;
    }
  }
}
