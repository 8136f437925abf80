// How the outputs of the event vectors follow from their inputs. Bytes are hexadecimal.

import {
  type Authorization,
  type DeadLetter,
  EVENT_HEADERS,
  type EventContent,
  type EventFacts,
  eventContent,
  eventLeaf,
  eventMessageId,
  eventPlace,
  eventRoot,
  eventRootBytes,
  isPreparedEvent,
  merklePath,
  merkleRoot,
  merkleTree,
  type Port,
  readDeadLetter,
  readEventHeaders,
  readEventProof,
  readEventSubject,
  refuseEvent,
  signEvents,
  toBase64Url,
  toHex,
  writeDeadLetter,
} from "@trellis/protocol";
import { bytes, type Recipes, recipe } from "../protocol/recipe.ts";

interface VerdictInput {
  readonly seed: string;
  readonly deployment: string;
  readonly subject: string;
  readonly payload: string;
  readonly storedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly publishes: readonly string[];
  readonly notBefore: number;
  readonly expiresAt: number;
  readonly revokedAt?: number;
}

export const eventRecipes: Recipes = {
  place: recipe(
    (_port, input: { api: string; name: string; params: string[]; payload: unknown; special?: string }) =>
      eventPlace(input, special(input.payload, input.special)),
  ),
  readSubject: recipe((_port, input: { subject: string }) => readEventSubject(input.subject) ?? "refused"),
  content: recipe((port, input: EventContent) => eventContent(port, input)),
  messageId: recipe((port, input: EventContent) => eventMessageId(eventContent(port, input))),
  leaf: recipe((port, input: { content: string; facts: EventFacts }) =>
    eventLeaf(port, input.content, input.facts),
  ),
  tree: recipe((port, input: { leaves: string[] }) => {
    const leaves = input.leaves.map((data) => port.sha256Text(data));
    const tree = merkleTree(port, leaves);
    const { root, size } = tree;
    const paths = leaves.map((_, leaf) => merklePath(tree, leaf));
    const proven = leaves.map((leaf, index) =>
      merkleRoot(port, leaf, { size, index, path: paths[index] ?? "" }),
    );
    return { root, paths, proven: proven.every((found) => found === root) };
  }),
  sign: recipe((port, input: { leaves: string[]; authorization: string; signedAt: number; seed: string }) =>
    signEvents(port, { ...input, key: port.ed25519.keyPair(bytes(input.seed)) }),
  ),
  readProof: recipe((_port, input: { proof: string }) => {
    const proof = readEventProof(input.proof);
    return proof === undefined ? "refused" : { ...proof, signature: toHex(proof.signature) };
  }),
  verdict: recipe((port, input: VerdictInput) => verdict(port, input)),
  prepared: recipe((_port, input: { event: unknown }) => isPreparedEvent(input.event)),
  deadLetter: recipe((_port, input: DeadLetter) => {
    const headers = writeDeadLetter(input);
    return { headers, read: readDeadLetter((name) => headers[name] ?? "") ?? "refused" };
  }),
};

/** Numbers that JSON cannot hold, by name: they take the place of every `"?"` in a payload. */
function special(payload: unknown, name: string | undefined): unknown {
  if (name === undefined || typeof payload !== "object" || payload === null) return payload;
  return Object.fromEntries(
    Object.entries(payload).map(([key, value]) => [key, value === "?" ? Number(name) : (value as unknown)]),
  );
}

/** What a consumer says of a stored message: `accepted`, or why not. */
export function verdict(port: Port, input: VerdictInput): string {
  const address = readEventSubject(input.subject);
  const read = readEventHeaders((name) => input.headers[name] ?? "");
  if (address === undefined) return "malformed";
  if (!read.ok) return read.reason;
  const { subject, payload, deployment, storedAt, notBefore, expiresAt, revokedAt } = input;
  const content = eventContent(port, { deployment, subject, id: read.stamp.id, payload });
  const event = { subject, address, stamp: read.stamp, content, storedAt };
  const root = eventRoot(port, event);
  const { publicKey } = port.ed25519.keyPair(bytes(input.seed));
  const { proof } = read.stamp;
  if (root === undefined || !port.ed25519.verify(publicKey, eventRootBytes(proof, root), proof.signature)) {
    return "signature_invalid";
  }
  const authorization = { deployment, notBefore, expiresAt } as Authorization;
  const call = { rpc: [], feeds: [], operations: [], consumes: [] };
  const publishes = [...input.publishes];
  const grants = {
    version: 1 as const,
    calls: [{ ...call, api: address.api, deployment, publishes }],
    capabilities: [],
  };
  return refuseEvent(event, { authorization, grants, revokedAt }) ?? "accepted";
}

/** An event that is yet to be signed. */
export interface UnsignedEvent {
  readonly subject: string;
  readonly id: string;
  readonly payload: string;
  readonly facts: EventFacts;
}

/** The headers of events that one publisher signed together; for the inputs of vectors and for tests. */
export function signedHeaders(
  port: Port,
  input: {
    readonly seed: string;
    readonly deployment: string;
    readonly signedAt: number;
    readonly events: readonly UnsignedEvent[];
  },
): Record<string, string>[] {
  const { deployment, signedAt, events } = input;
  const contents = events.map(({ subject, id, payload }) =>
    eventContent(port, { deployment, subject, id, payload }),
  );
  const proofs = signEvents(port, {
    leaves: events.map(({ facts }, index) => eventLeaf(port, contents[index] ?? "", facts)),
    authorization: toBase64Url(new Uint8Array(32).fill(7)),
    signedAt,
    key: port.ed25519.keyPair(bytes(input.seed)),
  });
  return events.map(({ id, facts }, index) => ({
    [EVENT_HEADERS.id]: id,
    [EVENT_HEADERS.time]: String(facts.time),
    [EVENT_HEADERS.requestId]: facts.requestId,
    [EVENT_HEADERS.traceparent]: facts.traceparent,
    [EVENT_HEADERS.tracestate]: facts.tracestate,
    [EVENT_HEADERS.proof]: proofs[index] ?? "",
    [EVENT_HEADERS.messageId]: eventMessageId(contents[index] ?? ""),
  }));
}
