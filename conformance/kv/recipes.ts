// How the outputs of the key-value vectors follow from their inputs.

import {
  decodeKvKey,
  encodeKvKey,
  kvEntryKind,
  kvKeyProblem,
  kvPrefix,
  kvPrefixFilter,
  kvStreamName,
  kvWatchPrefix,
} from "@trellis/protocol";
import { type Recipes, recipe } from "../protocol/recipe.ts";

export const kvRecipes: Recipes = {
  encodeKey: recipe((_port, input: { key: string }) =>
    kvKeyProblem(input.key) === undefined ? encodeKvKey(input.key) : null,
  ),
  decodeKey: recipe((_port, input: { encoded: string }) => decodeKvKey(input.encoded) ?? null),
  prefixFilter: recipe((_port, input: { prefix: string }) => kvPrefixFilter(input.prefix)),
  subjects: recipe((_port, { bucket }: { bucket: string }) => ({
    stream: kvStreamName(bucket),
    values: kvPrefix(bucket),
    watch: kvWatchPrefix(bucket),
  })),
  entryKind: recipe((_port, input: { headers: Record<string, string> }) =>
    kvEntryKind({ get: (name) => input.headers[name] }),
  ),
};
