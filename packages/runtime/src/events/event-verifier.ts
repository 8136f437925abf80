import {
  type EventAddress,
  type EventProof,
  type EventRefusal,
  type EventStamp,
  EventTree,
  eventContent,
  eventLeaf,
  eventRoot,
  eventRootBytes,
  type Port,
  readEventHeaders,
  readEventProof,
  readEventSubject,
  readProofPlace,
  refuseEvent,
  type StoredEvent,
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
  /** JSON text. */
  readonly payload: string;
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

/** What a message says about itself, read and not believed. */
interface Claim {
  readonly subject: string;
  readonly address: EventAddress;
  readonly stamp: EventStamp;
  readonly payload: string;
  readonly storedAt: number;
  /** Names its tree. */
  readonly key: string;
  readonly known: KnownTree | undefined;
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
    const claim = this.#read(message, storedAt);
    if (typeof claim === "string") return { ok: false, reason: claim };
    const authority = this.#authorities.known(claim.stamp.proof.authorization);
    return authority === undefined ? this.#verifyUnknown(claim) : this.#verifyBy(claim, authority);
  }

  #read(message: EventMessage, storedAt: number): Claim | EventRefusal {
    const { subject, data } = message;
    let key: string | undefined;
    let known: KnownTree | undefined;
    const read = readEventHeaders(
      (name) => message.header(name),
      (text) => {
        const place = readProofPlace(text);
        if (place === undefined) return undefined;
        key = place.tree;
        known = this.#trees.get(key);
        return known === undefined ? readEventProof(text) : known.tree.read(place);
      },
    );
    if (!read.ok) return read.reason;
    const address = readEventSubject(subject);
    const payload = textOf(this.#link.platform.port, data);
    if (address === undefined || payload === undefined || key === undefined) return "malformed";
    return { subject, address, stamp: read.stamp, payload, storedAt, key, known };
  }

  async #verifyUnknown(claim: Claim): Promise<EventVerdict> {
    const authority = await this.#authorities.load(claim.stamp.proof.authorization);
    if (authority === undefined) return { ok: false, reason: "unknown_authorization" };
    return this.#verifyBy(claim, authority);
  }

  #verifyBy(claim: Claim, authority: Authority): EventVerdict | Promise<EventVerdict> {
    const { port } = this.#link.platform;
    const { subject, payload, stamp, key, known } = claim;
    const { deployment } = authority.authorization;
    const content = eventContent(port, { deployment, subject, id: stamp.id, payload });
    const leaf = eventLeaf(port, content, stamp);
    const event = { ...claim, content };
    if (known?.tree.holds(leaf, stamp.proof) === true) {
      if (known.tree.isComplete) this.#trees.delete(key);
      return this.#settle(event, authority, known.verified);
    }
    const root = eventRoot(port, event, leaf);
    if (root === undefined) return { ok: false, reason: "signature_invalid" };
    const tree = new EventTree(port, stamp.proof, { root, leaf });
    return this.#settle(event, authority, this.#isSigned(stamp.proof, { key, tree }, authority));
  }

  #settle(
    event: Claim & StoredEvent,
    authority: Authority,
    signed: boolean | Promise<boolean>,
  ): EventVerdict | Promise<EventVerdict> {
    return typeof signed === "boolean"
      ? this.#decide(event, authority, signed)
      : signed.then((valid) => this.#decide(event, authority, valid));
  }

  #decide(event: Claim & StoredEvent, authority: Authority, signed: boolean): EventVerdict {
    if (!signed) return { ok: false, reason: "signature_invalid" };
    const revokedAt = this.#link.revocations.revokedAt(authority.authorization);
    const { authorization, grants } = authority;
    const reason = refuseEvent(event, { authorization, grants, revokedAt });
    if (reason !== undefined) return { ok: false, reason };
    const { subject, address, stamp, payload, storedAt } = event;
    return { ok: true, subject, address, stamp, payload, authority, storedAt };
  }

  /** The signature of a root, checked once. */
  #isSigned(
    proof: EventProof,
    { key, tree }: { key: string; tree: EventTree },
    authority: Authority,
  ): boolean | Promise<boolean> {
    const { ed25519 } = this.#link.platform.port;
    const known = this.#trees.get(key);
    if (known !== undefined && known.tree.root === tree.root) return known.verified;
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
        if (!tree.isComplete) this.#trees.set(key, entry);
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

function textOf(port: Port, data: Uint8Array): string | undefined {
  try {
    return port.utf8.read(data, 0, data.length);
  } catch {
    return undefined;
  }
}
