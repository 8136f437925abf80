// How the outputs of the event vectors follow from their inputs. Bytes are hexadecimal.

import {
  type Authorization,
  type DeadLetter,
  EVENT_HEADERS,
  type EventFacts,
  eventLeaf,
  eventMessageId,
  eventPlace,
  eventRoot,
  eventRootBytes,
  isPreparedEvent,
  merkleLeaf,
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
  utf8Bytes,
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
  leaf: recipe((port, input: { facts: EventFacts; payload: string }) =>
    toHex(eventLeaf(port, input.facts, port.sha256(utf8Bytes(input.payload)))),
  ),
  messageId: recipe((port, input: { deployment: string; subject: string; id: string; payload: string }) =>
    eventMessageId(port, input, port.sha256(utf8Bytes(input.payload))),
  ),
  tree: recipe((port, input: { leaves: string[] }) => {
    const leaves = input.leaves.map((data) => merkleLeaf(port, utf8Bytes(data)));
    const { root, levels } = merkleTree(port, leaves);
    const paths = leaves.map((_, leaf) =>
      merklePath(leaves.length, leaf).map(({ level, index }) => toHex(levels[level]?.[index] ?? root)),
    );
    const size = leaves.length;
    const proven = leaves.map((leaf, index) => {
      const path = (paths[index] ?? []).map(bytes);
      return toHex(merkleRoot(port, leaf, { size, index, path }) ?? new Uint8Array());
    });
    return { root: toHex(root), paths, proven: proven.every((found) => found === toHex(root)) };
  }),
  sign: recipe((port, input: { leaves: string[]; authorization: string; signedAt: number; seed: string }) =>
    signEvents(port, {
      ...input,
      leaves: input.leaves.map(bytes),
      key: port.ed25519.keyPair(bytes(input.seed)),
    }),
  ),
  readProof: recipe((_port, input: { proof: string }) => {
    const proof = readEventProof(input.proof);
    return proof === undefined
      ? "refused"
      : { ...proof, signature: toHex(proof.signature), path: proof.path.map(toHex) };
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
  const payloadDigest = port.sha256(utf8Bytes(input.payload));
  const { subject, storedAt, notBefore, expiresAt, revokedAt } = input;
  const event = { subject, address, stamp: read.stamp, payloadDigest, storedAt };
  const root = eventRoot(port, event);
  const { publicKey } = port.ed25519.keyPair(bytes(input.seed));
  const { proof } = read.stamp;
  if (root === undefined || !port.ed25519.verify(publicKey, eventRootBytes(proof, root), proof.signature)) {
    return "signature_invalid";
  }
  const authorization = { deployment: input.deployment, notBefore, expiresAt } as Authorization;
  const call = { rpc: [], feeds: [], operations: [], consumes: [] };
  const publishes = [...input.publishes];
  const grants = {
    version: 1 as const,
    calls: [{ ...call, api: address.api, deployment: input.deployment, publishes }],
    capabilities: [],
  };
  return refuseEvent(port, event, { authorization, grants, revokedAt }) ?? "accepted";
}

/** The headers of events that one publisher signed together; for the inputs of vectors and for tests. */
export function signedHeaders(
  port: Port,
  input: {
    readonly seed: string;
    readonly deployment: string;
    readonly signedAt: number;
    readonly events: readonly { readonly facts: EventFacts; readonly payload: string }[];
  },
): Record<string, string>[] {
  const { deployment, signedAt, events } = input;
  const digests = events.map(({ payload }) => port.sha256(utf8Bytes(payload)));
  const leaves = events.map(({ facts }, index) => eventLeaf(port, facts, digests[index] ?? new Uint8Array()));
  const proofs = signEvents(port, {
    leaves,
    authorization: toBase64Url(new Uint8Array(32).fill(7)),
    signedAt,
    key: port.ed25519.keyPair(bytes(input.seed)),
  });
  return events.map(({ facts }, index) => ({
    [EVENT_HEADERS.id]: facts.id,
    [EVENT_HEADERS.time]: String(facts.time),
    [EVENT_HEADERS.requestId]: facts.requestId,
    [EVENT_HEADERS.traceparent]: facts.traceparent,
    [EVENT_HEADERS.tracestate]: facts.tracestate,
    [EVENT_HEADERS.proof]: proofs[index] ?? "",
    [EVENT_HEADERS.messageId]: eventMessageId(
      port,
      { deployment, subject: facts.subject, id: facts.id },
      digests[index] ?? new Uint8Array(),
    ),
  }));
}
