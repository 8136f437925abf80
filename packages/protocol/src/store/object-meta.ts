import { encodeJson } from "../json/encode.ts";
import { decodeObjectDigest } from "./object-digest.ts";

/** An object's description as it stands in the stream. */
export interface ObjectMeta {
  readonly key: string;
  /** Name of the chunks' subject. */
  readonly chunksId: string;
  readonly size: number;
  readonly chunks: number;
  readonly deleted: boolean;
  /** The text form; empty for a deleted object. */
  readonly digest: string;
  readonly contentType: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A link to another object or store, which other clients can make. It has no bytes of its own. */
export interface ObjectLink {
  readonly link: true;
}

const CONTENT_TYPE = "Content-Type";

/** JSON text of a description, in the form of NATS' own clients. */
export function encodeObjectMeta(
  bucket: string,
  meta: ObjectMeta & { readonly chunkBytes?: number },
): string {
  const { contentType, metadata } = meta;
  const encoding = encodeJson({
    name: meta.key,
    ...(contentType !== undefined && { headers: { [CONTENT_TYPE]: [contentType] } }),
    ...(Object.keys(metadata).length > 0 && { metadata: { ...metadata } }),
    ...(meta.chunkBytes !== undefined && { options: { max_chunk_size: meta.chunkBytes } }),
    bucket,
    nuid: meta.chunksId,
    size: meta.size,
    chunks: meta.chunks,
    digest: meta.digest,
    ...(meta.deleted && { deleted: true }),
  });
  if (!encoding.ok) throw new TypeError("An object's description holds what JSON cannot carry.");
  return encoding.text;
}

/**
 * Reads a description that anybody may have written; `undefined` when it is none. Its `name` must be the key that its
 * subject says: a description cannot speak for another object.
 */
export function decodeObjectMeta(value: unknown, key: string): ObjectMeta | ObjectLink | undefined {
  if (!isRecord(value) || value["name"] !== key) return undefined;
  const { options, nuid, size, chunks, digest } = value;
  if (isRecord(options) && options["link"] !== undefined) return { link: true };
  const deleted = value["deleted"] === true;
  if (!isToken(nuid) && !(deleted && nuid === undefined)) return undefined;
  if (!isCount(size ?? 0) || !isCount(chunks ?? 0)) return undefined;
  const text = typeof digest === "string" ? digest : "";
  if (!deleted && decodeObjectDigest(text) === undefined) return undefined;
  return {
    key,
    chunksId: isToken(nuid) ? nuid : "",
    size: isCount(size) ? size : 0,
    chunks: isCount(chunks) ? chunks : 0,
    deleted,
    digest: text,
    contentType: contentTypeOf(value["headers"]),
    metadata: metadataOf(value["metadata"]),
  };
}

function contentTypeOf(headers: unknown): string | undefined {
  if (!isRecord(headers)) return undefined;
  for (const [name, values] of Object.entries(headers)) {
    if (name.toLowerCase() !== "content-type") continue;
    const first: unknown = Array.isArray(values) ? values[0] : values;
    if (typeof first === "string") return first;
  }
  return undefined;
}

/** Only pairs of text count; a description of another tool may hold anything. */
function metadataOf(value: unknown): Readonly<Record<string, string>> {
  if (!isRecord(value)) return {};
  const pairs = Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string");
  return Object.fromEntries(pairs);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** One token of a subject, of any length that clients use; nothing that could widen a filter. */
function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9_=-]{1,128}$/.test(value);
}
