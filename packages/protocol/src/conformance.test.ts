import { describe, expect, it } from "vitest";
import { readVectors, rewriteVectors, runVector } from "../../../conformance/protocol/recipe.ts";
import { VECTOR_FILES } from "../../../conformance/protocol/recipes.ts";
import { portablePort } from "./port/portable.ts";

// TRELLIS_WRITE_VECTORS=1 renews the outputs: only for a deliberate change of the wire.
const renew = process.env["TRELLIS_WRITE_VECTORS"] === "1";

describe.each(Object.entries(VECTOR_FILES))("vectors of %s", (file, recipes) => {
  if (renew) rewriteVectors(portablePort, recipes, file);
  it.each(readVectors(file).vectors)("$recipe: $name", (vector) => {
    expect(runVector(portablePort, recipes, vector)).toEqual(vector.output);
  });
});
