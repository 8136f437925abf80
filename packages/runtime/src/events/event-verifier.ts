import {
  type EventAddress,
  type EventProof,
  type EventRefusal,
  type EventStamp,
  EventTree,
  eventRoot,
  eventRootBytes,
  eventTreeKey,
  readEventHeaders,
  readEventProof,
  readEventSubject,
  refuseEvent,
  type StoredEvent,
  storedLeaf,
  toHex,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { type Authority, type AuthorityLink, EventAuthorities } from "./event-authorities.ts";

export type VerifierLink = AuthorityLink & Pick<Link, "revocations">;

/** A message that claims to be an event. */
export interface EventMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  header(name: string): string;
}

/** An event whose publisher, content and right to be there are proven. */
export interface VerifiedEvent {
  readonly ok: true;
  readonly subject: string;
  readonly address: EventAddress;
  readonly stamp: EventStamp;
  readonly authority: Authority;
  readonly storedAt: number;
}

export type EventVerdict = VerifiedEvent | { readonly ok: false; readonly reason: EventRefusal };

/** Batches that publishers interleave; each tree of 64 takes some tens of KiB. */
const maxTrees = 128;
/** Between two events that are verified on this thread, ms. */
const aloneMs = 1;

interface KnownTree {
  readonly tree: EventTree;
  /** `true` once its root is verified; a tree whose root is not is forgotten. */
  verified: true | Promise<boolean>;
}

/**
 * Verifies events. The signature of a root is checked once, off the main thread, and remembered: the events that it
 * covers then cost a few hashes each.
 */
export class EventVerifier {
  readonly #link: VerifierLink;
  readonly #authorities: EventAuthorities;
  /** Trees by what their proofs have in common, oldest first. */
  readonly #trees = new Map<string, KnownTree>();
  /** Monotonic ms of the last event that was verified on this thread. */
  #aloneAt = 0;

  constructor(link: VerifierLink) {
    this.#link = link;
    this.#authorities = new EventAuthorities(link);
  }

  /** At once for a tree and a publisher that are known. Rejects with `LookupFailed` when it cannot say. */
  verify(message: EventMessage, storedAt: number): EventVerdict | Promise<EventVerdict> {
    const { port } = this.#link.platform;
    const { subject, data } = message;
    let key: string | undefined;
    let known: KnownTree | undefined;
    const read = readEventHeaders(
      (name) => message.header(name),
      (text) => {
        key = eventTreeKey(text);
        known = key === undefined ? undefined : this.#trees.get(key);
        return known === undefined ? readEventProof(text) : known.tree.read(text);
      },
    );
    if (!read.ok) return { ok: false, reason: read.reason };
    const address = readEventSubject(subject);
    if (address === undefined) return { ok: false, reason: "malformed" };
    const { stamp } = read;
    const event = { subject, address, stamp, payloadDigest: port.sha256(data), storedAt };
    const leaf = storedLeaf(port, event);
    const authority = this.#authorities.known(stamp.proof.authorization);
    if (known !== undefined && authority !== undefined && known.tree.holds(leaf, stamp.proof))
      return this.#settle(event, authority, known.verified);
    const root = eventRoot(port, event, leaf);
    if (root === undefined || key === undefined) return { ok: false, reason: "signature_invalid" };
    const tree = new EventTree(port, stamp.proof, { root, leaf });
    if (authority === undefined) return this.#verifyUnknown(event, { key, tree });
    return this.#settle(event, authority, this.#isSigned(stamp.proof, { key, tree }, authority));
  }

  #settle(
    event: StoredEvent,
    authority: Authority,
    signed: boolean | Promise<boolean>,
  ): EventVerdict | Promise<EventVerdict> {
    return typeof signed === "boolean"
      ? this.#decide(event, authority, signed)
      : signed.then((valid) => this.#decide(event, authority, valid));
  }

  async #verifyUnknown(event: StoredEvent, place: { key: string; tree: EventTree }): Promise<EventVerdict> {
    const authority = await this.#authorities.load(event.stamp.proof.authorization);
    if (authority === undefined) return { ok: false, reason: "unknown_authorization" };
    return this.#decide(event, authority, await this.#isSigned(event.stamp.proof, place, authority));
  }

  #decide(event: StoredEvent, authority: Authority, signed: boolean): EventVerdict {
    if (!signed) return { ok: false, reason: "signature_invalid" };
    const revokedAt = this.#link.revocations.revokedAt(authority.authorization);
    const reason = refuseEvent(this.#link.platform.port, event, { ...authority, revokedAt });
    if (reason !== undefined) return { ok: false, reason };
    const { subject, address, stamp, storedAt } = event;
    return { ok: true, subject, address, stamp, authority, storedAt };
  }

  /** The signature of a root, checked once. */
  #isSigned(
    proof: EventProof,
    { key, tree }: { key: string; tree: EventTree },
    authority: Authority,
  ): boolean | Promise<boolean> {
    const { ed25519 } = this.#link.platform.port;
    const known = this.#trees.get(key);
    if (known !== undefined && toHex(known.tree.root) === toHex(tree.root)) return known.verified;
    const bytes = eventRootBytes(proof, tree.root);
    if (known === undefined && this.#isAlone(proof)) {
      const valid = ed25519.verify(authority.sessionKey, bytes, proof.signature);
      if (valid) this.#remember(key, { tree, verified: true });
      return valid;
    }
    const verified = ed25519.verifyLater(authority.sessionKey, bytes, proof.signature);
    const entry: KnownTree = { tree, verified };
    // Another root under a name that is known: the one of them that is signed stays.
    if (known === undefined) this.#remember(key, entry);
    void verified.then((valid) => {
      if (valid) {
        entry.verified = true;
        this.#trees.set(key, entry);
      } else if (this.#trees.get(key) === entry) this.#trees.delete(key);
    });
    return verified;
  }

  /**
   * An event that comes alone is verified here: the way to another thread and back takes longer than the signature.
   * Rarely enough that this thread has its time for others, whatever comes.
   */
  #isAlone({ size }: EventProof): boolean {
    if (size !== 1) return false;
    const now = this.#link.clock.monotonic();
    if (now - this.#aloneAt < aloneMs) return false;
    this.#aloneAt = now;
    return true;
  }

  #remember(key: string, entry: KnownTree): void {
    if (this.#trees.size >= maxTrees) {
      const [oldest] = this.#trees.keys();
      if (oldest !== undefined) this.#trees.delete(oldest);
    }
    this.#trees.set(key, entry);
  }
}
