import fc from "fast-check";
import { expect, it } from "vitest";
import { portablePort as port } from "../port/portable.ts";
import { type EventProof, readEventProof, readProofPlace, signEvents } from "./event-proof.ts";
import { EventTree } from "./event-tree.ts";
import { merklePath, merkleRoot, merkleTree } from "./merkle.ts";

const proofOf = (place: Pick<EventProof, "size" | "index" | "path">): EventProof => ({
  ...place,
  authorization: "a",
  signedAt: 1,
  signature: new Uint8Array(64),
});

const leafOf = (n: number) => port.sha256Text(String(n));

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
      const leaves = Array.from({ length: size }, (_, n) => leafOf(n));
      const tree = merkleTree(port, leaves);
      const { root } = tree;
      const pathOf = (index: number) => merklePath(tree, index);
      const known = new EventTree(port, proofOf({ size, index: 0, path: pathOf(0) }), {
        root,
        leaf: leaves[0] ?? root,
      });
      for (const { index, leafChanged, pathChanged } of coming) {
        const hashes = pathOf(index).split(".");
        if (pathChanged !== null && size > 1 && pathChanged < hashes.length)
          hashes[pathChanged] = leafOf(999);
        const path = hashes.join(".");
        const leaf = leafChanged ? leafOf(1_000 + index) : (leaves[index] ?? root);
        const proof = proofOf({ size, index, path });
        const whole = merkleRoot(port, leaf, proof);
        const isWhole = whole === root;
        // What is known needs no path: only a changed hash that was not looked at may differ, of a leaf that is genuine.
        if (isWhole) expect(known.holds(leaf, proof)).toBe(true);
        else if (leafChanged) expect(known.holds(leaf, proof)).toBe(false);
        else if (known.holds(leaf, proof)) expect(leaf).toBe(leaves[index]);
      }
    }),
    { numRuns: 60 },
  );
});

it("reads the proofs of its own events only", () => {
  const leaves = [0, 1, 2].map((n) => leafOf(n));
  const { root } = merkleTree(port, leaves);
  const key = port.ed25519.keyPair(new Uint8Array(32).fill(1));
  const texts = signEvents(port, { leaves, authorization: root, signedAt: 1, key });
  const first = readEventProof(texts[0] ?? "");
  if (first === undefined) throw new Error("unreadable");
  const known = new EventTree(port, first, { root, leaf: leaves[0] ?? root });
  const read = (text: string) => {
    const place = readProofPlace(text);
    return place === undefined ? undefined : known.read(place);
  };
  for (const [index, text] of texts.entries()) {
    const proof = read(text);
    expect(proof).toMatchObject({ size: 3, index, signedAt: 1 });
    expect(proof !== undefined && known.holds(leaves[index] ?? root, proof)).toBe(true);
  }
  const [one = ""] = texts;
  for (const bad of [
    "",
    "1",
    one.replace(/ 0 (\S+)$/, " 3 $1"),
    one.replace(/ 0 (\S+)$/, " -1 $1"),
    one.replace(/ 0 (\S+)$/, " 2 $1"),
    `${one}A`,
  ])
    expect(read(bad), bad).toBeUndefined();
});
