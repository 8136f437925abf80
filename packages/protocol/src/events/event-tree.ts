import type { Port } from "../port/port.ts";
import { type EventProof, readEventProof, readWhole } from "./event-proof.ts";
import { merkleNode, merklePath } from "./merkle.ts";

const HASH_TEXT = 43;
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
  readonly root: Uint8Array;
  readonly #port: Port;
  readonly #proof: EventProof;
  readonly #nodes = new Map<number, Uint8Array>();

  /** `root`: to which leaf and proof lead; see `eventRoot`. */
  constructor(port: Port, proof: EventProof, { root, leaf }: { root: Uint8Array; leaf: Uint8Array }) {
    this.#port = port;
    this.#proof = proof;
    this.root = root;
    let level = 0;
    for (let width = proof.size; width > 1; width = (width + 1) >> 1) level += 1;
    this.#nodes.set(level * WIDTH, root);
    this.holds(leaf, proof);
  }

  /** The proof of another event of this tree; its path is decoded only when somebody asks for it. */
  read(text: string): EventProof | undefined {
    const [, , , , indexText = "", , pathText = ""] = text.split(" ");
    const { authorization, signedAt, size, signature } = this.#proof;
    const index = readWhole(indexText);
    if (index === undefined || index >= size) return undefined;
    const hashes = merklePath(size, index).length;
    if (pathText.length !== (hashes === 0 ? 1 : hashes * (HASH_TEXT + 1) - 1)) return undefined;
    let path: readonly Uint8Array[] | undefined;
    return {
      authorization,
      signedAt,
      size,
      index,
      signature,
      get path() {
        path ??= readEventProof(text)?.path ?? [];
        return path;
      },
    };
  }

  /** Whether the leaf is in this tree. What its path teaches is kept. */
  holds(leaf: Uint8Array, proof: EventProof): boolean {
    const learned: [number, Uint8Array][] = [];
    let { index } = proof;
    let width = proof.size;
    let hash = leaf;
    let used = 0;
    for (let level = 0; ; level += 1) {
      const known = this.#nodes.get(level * WIDTH + index);
      if (known !== undefined) {
        if (!isEqual(known, hash)) return false;
        for (const [place, bytes] of learned) this.#nodes.set(place, bytes);
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

function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  for (let at = 0; at < left.length; at += 1) if (left[at] !== right[at]) return false;
  return left.length === right.length;
}
