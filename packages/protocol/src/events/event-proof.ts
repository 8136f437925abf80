import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { transcript } from "../bytes/transcript.ts";
import type { Port, SigningKey } from "../port/port.ts";
import { MAX_MERKLE_LEAVES, type MerkleProof, merklePath, merklePathLength, merkleTree } from "./merkle.ts";

export const EVENT_ROOT_LABEL = "trellis.event-root.v1";

const VERSION = "1";
/** A header's value must not end in nothing: white space at its end is not kept. */
const NO_PATH = "-";
const HASH_TEXT = 43;
const HASH = /^[A-Za-z0-9_-]{43}$/;

/** Who signed an event, when, and how it hangs in the tree whose root was signed. */
export interface EventProof extends MerkleProof {
  /** Digest of the publisher's authorization, base64url. */
  readonly authorization: string;
  /** When the root was signed, ms of the publisher's clock. */
  readonly signedAt: number;
  readonly signature: Uint8Array;
}

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
 * `1 <authorization> <signed at> <size> <index> <signature> <path>`, the path's hashes joined by dots, `-` for none.
 */
export function signEvents(port: Port, input: SignEventsInput): readonly string[] {
  const { authorization, signedAt, key } = input;
  const tree = merkleTree(port, input.leaves);
  const { root, size } = tree;
  const signature = toBase64Url(key.sign(rootTranscript({ authorization, signedAt, size }, root)));
  const head = `${VERSION} ${authorization} ${signedAt} ${size}`;
  return input.leaves.map((_, leaf) => {
    const path = size === 1 ? NO_PATH : merklePath(tree, leaf).join(".");
    return `${head} ${leaf} ${signature} ${path}`;
  });
}

/** What the signature of a root covers. */
function rootTranscript(
  proof: Pick<EventProof, "authorization" | "signedAt" | "size">,
  root: string,
): Uint8Array {
  const { authorization, signedAt, size } = proof;
  return transcript(EVENT_ROOT_LABEL, authorization, String(signedAt), String(size), root);
}

/** The bytes that must be signed for this root to be the publisher's. */
export function eventRootBytes(proof: EventProof, root: string): Uint8Array {
  return rootTranscript(proof, root);
}

/** Reads a proof; `undefined` for everything but the one spelling that {@link signEvents} gives it. */
export function readEventProof(text: string): EventProof | undefined {
  const parts = text.split(" ");
  const [version, authorization = "", at = "", sizeText = "", indexText = "", signed = "", pathText = ""] =
    parts;
  if (parts.length !== 7 || version !== VERSION) return undefined;
  const signedAt = readWhole(at);
  const size = readWhole(sizeText);
  const index = readWhole(indexText);
  if (signedAt === undefined || size === undefined || index === undefined) return undefined;
  if (size < 1 || size > MAX_MERKLE_LEAVES || index >= size) return undefined;
  if (bytesOf(authorization, 32) === undefined) return undefined;
  const signature = bytesOf(signed, 64);
  const path = readPath(pathText, merklePathLength(size, index));
  if (signature === undefined || path === undefined) return undefined;
  return { authorization, signedAt, size, index, signature, path };
}

/** Exactly so many hashes, joined by dots. They stay as they are: nothing but the one spelling leads to the root. */
export function readPath(text: string, count: number): readonly string[] | undefined {
  if (count === 0) return text === NO_PATH ? [] : undefined;
  if (text.length !== count * (HASH_TEXT + 1) - 1) return undefined;
  const path = text.split(".");
  return path.length === count && path.every((hash) => HASH.test(hash)) ? path : undefined;
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
