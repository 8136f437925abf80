import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { transcript } from "../bytes/transcript.ts";
import type { Port, SigningKey } from "../port/port.ts";
import {
  isMerklePath,
  MAX_MERKLE_LEAVES,
  type MerkleProof,
  merklePath,
  merklePathLength,
  merkleTree,
} from "./merkle.ts";

export const EVENT_ROOT_LABEL = "trellis.event-root.v1";

const VERSION = "1";
/** A header's value must not end in nothing: white space at its end is not kept. */
const NO_PATH = "-";

/** Who signed the root of a tree of events, and when. */
export interface SignedTree {
  /** Digest of the publisher's authorization, base64url. */
  readonly authorization: string;
  /** When the root was signed, ms of the publisher's clock. */
  readonly signedAt: number;
  /** Leaves of the tree. */
  readonly size: number;
  readonly signature: Uint8Array;
}

/** Who signed an event, when, and how it hangs in the tree whose root was signed. */
export interface EventProof extends SignedTree, MerkleProof {}

export interface SignEventsInput {
  /** Leaf hashes of 1 to 64 events, in order. */
  readonly leaves: readonly string[];
  /** Digest of the publisher's authorization, base64url. */
  readonly authorization: string;
  readonly signedAt: number;
  /** The session key that the authorization names. */
  readonly key: SigningKey;
}

/**
 * Signs events with one signature. Gives the proof of each, as it stands in its header:
 * `1 <authorization> <signed at> <size> <signature> <index> <path>`, the path's hashes joined by dots, `-` for none.
 * All but index and path is the same in every event of the tree.
 */
export function signEvents(port: Port, input: SignEventsInput): readonly string[] {
  const { authorization, signedAt, key } = input;
  const tree = merkleTree(port, input.leaves);
  const { root, size } = tree;
  const signature = toBase64Url(key.sign(rootTranscript({ authorization, signedAt, size }, root)));
  const head = `${VERSION} ${authorization} ${signedAt} ${size} ${signature}`;
  return input.leaves.map((_, leaf) => `${head} ${leaf} ${size === 1 ? NO_PATH : merklePath(tree, leaf)}`);
}

/** What the signature of a root covers. */
function rootTranscript(tree: Omit<SignedTree, "signature">, root: string): Uint8Array {
  const { authorization, signedAt, size } = tree;
  return transcript(EVENT_ROOT_LABEL, authorization, String(signedAt), String(size), root);
}

/** The bytes that must be signed for this root to be the publisher's. */
export function eventRootBytes(tree: SignedTree, root: string): Uint8Array {
  return rootTranscript(tree, root);
}

/** A proof taken apart: what names its tree, and the event's own place in it. */
export interface ProofPlace {
  readonly tree: string;
  readonly index: number;
  readonly path: string;
}

/** Takes a proof apart, without a look at what names the tree. */
export function readProofPlace(text: string): ProofPlace | undefined {
  const pathAt = text.lastIndexOf(" ");
  const indexAt = text.lastIndexOf(" ", pathAt - 1);
  const index = readWhole(text.slice(indexAt + 1, pathAt));
  if (indexAt < 1 || index === undefined) return undefined;
  const path = text.slice(pathAt + 1);
  return { tree: text.slice(0, indexAt), index, path: path === NO_PATH ? "" : path };
}

/** Reads a proof; `undefined` for everything but the one spelling that {@link signEvents} gives it. */
export function readEventProof(text: string): EventProof | undefined {
  const place = readProofPlace(text);
  const tree = place === undefined ? undefined : readSignedTree(place.tree);
  if (place === undefined || tree === undefined || place.index >= tree.size) return undefined;
  const { index, path } = place;
  return isMerklePath(path, merklePathLength(tree.size, index)) ? { ...tree, index, path } : undefined;
}

function readSignedTree(text: string): SignedTree | undefined {
  const parts = text.split(" ");
  const [version, authorization = "", at = "", sizeText = "", signed = ""] = parts;
  if (parts.length !== 5 || version !== VERSION) return undefined;
  const signedAt = readWhole(at);
  const size = readWhole(sizeText);
  if (signedAt === undefined || size === undefined || size < 1 || size > MAX_MERKLE_LEAVES) return undefined;
  const signature = bytesOf(signed, 64);
  if (signature === undefined || bytesOf(authorization, 32) === undefined) return undefined;
  return { authorization, signedAt, size, signature };
}

function bytesOf(text: string, length: number): Uint8Array | undefined {
  const bytes = fromBase64Url(text);
  return bytes?.length === length ? bytes : undefined;
}

/** A whole number without sign and leading zeros, up to 2^53 - 1. */
export function readWhole(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}
