import {
  type EventAddress,
  type EventProof,
  type EventRefusal,
  type EventStamp,
  eventRootBytes,
  KnownTree,
  merkleRoot,
  readEventHeaders,
  readEventSubject,
  refuseEvent,
  type StoredEvent,
  storedEventLeaf,
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

const maxRoots = 4_096;
/** Roots of which more is remembered than the root itself: the events of one turn come together. */
const maxTrees = 128;

interface KnownRoot {
  readonly proof: EventProof;
  readonly root: Uint8Array;
  tree: KnownTree | undefined;
  /** `true` once it is verified; a root that is not is forgotten. */
  verified: true | Promise<boolean>;
}

/**
 * Verifies events. The signature of a root is checked once, off the main thread, and remembered: the events that it
 * covers then cost a few hashes each.
 */
export class EventVerifier {
  readonly #link: VerifierLink;
  readonly #authorities: EventAuthorities;
  /** Roots by their signature, oldest first. */
  readonly #roots = new Map<string, KnownRoot>();
  /** The newest of them. */
  readonly #trees: KnownRoot[] = [];

  constructor(link: VerifierLink) {
    this.#link = link;
    this.#authorities = new EventAuthorities(link);
  }

  /** At once for a root and a publisher that are known. Rejects with `LookupFailed` when it cannot say. */
  verify(message: EventMessage, storedAt: number): EventVerdict | Promise<EventVerdict> {
    const { port } = this.#link.platform;
    const { subject, data } = message;
    const read = readEventHeaders((name) => message.header(name));
    if (!read.ok) return { ok: false, reason: read.reason };
    const address = readEventSubject(subject);
    if (address === undefined) return { ok: false, reason: "malformed" };
    const event = { subject, address, stamp: read.stamp, payloadDigest: port.sha256(data), storedAt };
    const leaf = storedEventLeaf(port, event);
    const authority = this.#authorities.known(read.stamp.proof.authorization);
    if (authority === undefined) return this.#verifyUnknown(event, leaf);
    const signed = this.#isSigned(read.stamp.proof, leaf, authority);
    return typeof signed === "boolean"
      ? this.#decide(event, authority, signed)
      : signed.then((valid) => this.#decide(event, authority, valid));
  }

  async #verifyUnknown(event: StoredEvent, leaf: Uint8Array): Promise<EventVerdict> {
    const authority = await this.#authorities.load(event.stamp.proof.authorization);
    if (authority === undefined) return { ok: false, reason: "unknown_authorization" };
    return this.#decide(event, authority, await this.#isSigned(event.stamp.proof, leaf, authority));
  }

  #decide(event: StoredEvent, authority: Authority, signed: boolean): EventVerdict {
    if (!signed) return { ok: false, reason: "signature_invalid" };
    const revokedAt = this.#link.revocations.revokedAt(authority.authorization);
    const reason = refuseEvent(this.#link.platform.port, event, { ...authority, revokedAt });
    if (reason !== undefined) return { ok: false, reason };
    const { subject, address, stamp, storedAt } = event;
    return { ok: true, subject, address, stamp, authority, storedAt };
  }

  #isSigned(proof: EventProof, leaf: Uint8Array, authority: Authority): boolean | Promise<boolean> {
    const { port } = this.#link.platform;
    const { signature, size } = proof;
    const name = latin1(signature);
    const known = this.#roots.get(name);
    const same = known !== undefined && isSameRoot(known.proof, proof);
    if (same && known.tree?.proves(port, leaf, proof) === true) return known.verified;
    const root = merkleRoot(port, leaf, proof);
    if (root === undefined) return false;
    if (same && port.equal(known.root, root)) return known.verified;
    const verified = port.ed25519.verifyLater(authority.sessionKey, eventRootBytes(proof, root), signature);
    // One signature of two roots: whoever made the other one, it does not push out the one that is there.
    if (known !== undefined) return verified;
    const tree = new KnownTree(size, root);
    tree.proves(port, leaf, proof);
    const entry: KnownRoot = { proof, root, tree, verified };
    this.#remember(name, entry);
    void verified.then((valid) => {
      if (valid) entry.verified = true;
      else if (this.#roots.get(name) === entry) this.#roots.delete(name);
    });
    return verified;
  }

  #remember(name: string, root: KnownRoot): void {
    if (this.#roots.size >= maxRoots) {
      const [oldest] = this.#roots.keys();
      if (oldest !== undefined) this.#roots.delete(oldest);
    }
    this.#roots.set(name, root);
    this.#trees.push(root);
    const old = this.#trees.length > maxTrees ? this.#trees.shift() : undefined;
    if (old !== undefined) old.tree = undefined;
  }
}

/** Bytes as a text of as many characters: a key for a map. */
function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

function isSameRoot(a: EventProof, b: EventProof): boolean {
  return a.authorization === b.authorization && a.signedAt === b.signedAt && a.size === b.size;
}
