import fc from "fast-check";
import { expect, it } from "vitest";
import { portablePort as port } from "../port/portable.ts";
import { KnownTree } from "./known-tree.ts";
import { type MerkleProof, merkleLeaf, merklePath, merkleRoot, merkleTree } from "./merkle.ts";

const bytes = (n: number) => Uint8Array.from({ length: 4 }, (_, at) => (n >> (8 * at)) & 255);

it("says of every leaf what following its whole path says, in whatever order they come", () => {
  const trees = fc.integer({ min: 1, max: 64 }).chain((size) =>
    fc.record({
      size: fc.constant(size),
      // What comes: an index, and whether leaf, or one hash of its path, is another.
      coming: fc.array(
        fc.record({
          index: fc.nat(size - 1),
          leafChanged: fc.boolean(),
          pathChanged: fc.option(fc.nat(5), { freq: 4 }),
        }),
        { maxLength: 40 },
      ),
    }),
  );
  fc.assert(
    fc.property(trees, ({ size, coming }) => {
      const leaves = Array.from({ length: size }, (_, n) => merkleLeaf(port, bytes(n)));
      const { root, levels } = merkleTree(port, leaves);
      const known = new KnownTree(size, root);
      for (const { index, leafChanged, pathChanged } of coming) {
        const path = merklePath(size, index).map((at) => levels[at.level]?.[at.index] ?? root);
        if (pathChanged !== null && pathChanged < path.length)
          path[pathChanged] = merkleLeaf(port, bytes(999));
        const leaf = leafChanged ? merkleLeaf(port, bytes(1_000 + index)) : (leaves[index] ?? root);
        const proof: MerkleProof = { size, index, path };
        const whole = merkleRoot(port, leaf, proof);
        const isWhole = whole !== undefined && port.equal(whole, root);
        // What is known needs no path: only a changed hash that was not looked at may differ, of a leaf that is genuine.
        if (isWhole) expect(known.proves(port, leaf, proof)).toBe(true);
        else if (leafChanged) expect(known.proves(port, leaf, proof)).toBe(false);
        else if (known.proves(port, leaf, proof)) expect(port.equal(leaf, leaves[index] ?? root)).toBe(true);
      }
    }),
    { numRuns: 60 },
  );
});

it("proves nothing of a tree of another size, or beyond its end", () => {
  const leaves = [0, 1, 2].map((n) => merkleLeaf(port, bytes(n)));
  const { root } = merkleTree(port, leaves);
  const known = new KnownTree(3, root);
  for (const [size, index] of [
    [2, 0],
    [4, 0],
    [3, 3],
    [3, -1],
  ] as const)
    expect(known.proves(port, root, { size, index, path: [] })).toBe(false);
});
