// How the outputs of the object store's vectors follow from their inputs. Bytes are hexadecimal.

import {
  decodeListCursor,
  decodeObjectMeta,
  decodeStoreKey,
  encodeListCursor,
  encodeObjectDigest,
  encodeObjectMeta,
  encodeStoreKey,
  type ObjectMeta,
  safeFileName,
  storeChunkPrefix,
  storeKeyProblem,
  storeMetaPrefix,
  storeStreamName,
  storeWatchPrefix,
} from "@trellis/protocol";
import { bytes, type Recipes, recipe } from "../protocol/recipe.ts";

export const storeRecipes: Recipes = {
  encodeKey: recipe((_port, input: { key: string }) =>
    storeKeyProblem(input.key) === undefined ? encodeStoreKey(input.key) : null,
  ),
  decodeKey: recipe((_port, input: { token: string }) => decodeStoreKey(input.token) ?? null),
  subjects: recipe((_port, { name }: { name: string }) => ({
    stream: storeStreamName(name),
    chunks: storeChunkPrefix(name),
    meta: storeMetaPrefix(name),
    watch: storeWatchPrefix(name),
  })),
  digest: recipe((port, input: { data: string }) => encodeObjectDigest(port.sha256(bytes(input.data)))),
  encodeMeta: recipe((_port, input: { bucket: string; meta: ObjectMeta }) =>
    encodeObjectMeta(input.bucket, input.meta),
  ),
  decodeMeta: recipe(
    (_port, input: { text: string; key: string }) =>
      decodeObjectMeta(JSON.parse(input.text), input.key) ?? null,
  ),
  cursor: recipe((_port, input: { prefix: string; key: string }) => encodeListCursor(input)),
  readCursor: recipe(
    (_port, input: { cursor: string; prefix: string }) =>
      decodeListCursor(input.cursor, input.prefix) ?? null,
  ),
  fileName: recipe((_port, input: { key: string }) => safeFileName(input.key)),
};
