import { portablePort } from "@trellis/protocol/portable";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readVectors, runVector } from "../../../../../conformance/protocol/recipe.ts";
import { VECTOR_FILES } from "../../../../../conformance/protocol/recipes.ts";
import { nodePort } from "./port.ts";

describe.each(Object.entries(VECTOR_FILES))("vectors of %s on Node's crypto", (file, recipes) => {
  it.each(readVectors(file).vectors)("$recipe: $name", (vector) => {
    expect(runVector(nodePort, recipes, vector)).toEqual(vector.output);
  });
});

const data = fc.uint8Array({ maxLength: 300 });
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe("nodePort and portablePort agree", () => {
  it("on hashes, MACs and derived keys", () => {
    fc.assert(
      fc.property(data, data, bytes32, (first, second, key) => {
        expect([...nodePort.sha256(first)]).toEqual([...portablePort.sha256(first)]);
        const ours = nodePort.mac(nodePort.macKey(key), first, second);
        expect([...ours]).toEqual([...portablePort.mac(portablePort.macKey(key), first, second)]);
        const input = { secret: key, salt: first, info: "é", length: 48 };
        expect([...nodePort.hkdf(input)]).toEqual([...portablePort.hkdf(input)]);
      }),
    );
  });

  it("on signatures, shared secrets and sealed boxes, each reading what the other wrote", () => {
    fc.assert(
      fc.property(data, bytes32, bytes32, (message, a, b) => {
        const signature = nodePort.ed25519.keyPair(a).sign(message);
        expect([...signature]).toEqual([...portablePort.ed25519.keyPair(a).sign(message)]);
        const { publicKey } = portablePort.ed25519.keyPair(a);
        expect(nodePort.ed25519.verify(publicKey, message, signature)).toBe(true);
        const one = nodePort.x25519.keyPair(a);
        const two = portablePort.x25519.keyPair(b);
        expect([...one.shared(two.publicKey)]).toEqual([...two.shared(one.publicKey)]);
        const box = { key: a, nonce: b.subarray(0, 12), associated: message };
        const sealed = nodePort.aesGcm.seal({ ...box, data: message });
        expect(portablePort.aesGcm.open({ ...box, data: sealed })).toEqual(Uint8Array.from(message));
      }),
      { numRuns: 15 },
    );
  });

  it("on text, and on what is no text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(8), (text, at) => {
        const length = nodePort.utf8.length(text);
        expect(portablePort.utf8.length(text)).toBe(length);
        const into = new Uint8Array(at + length);
        expect(nodePort.utf8.write(into, text, at)).toBe(length);
        expect(portablePort.utf8.write(new Uint8Array(at + length), text, at)).toBe(length);
        expect(nodePort.utf8.read(into, at, at + length)).toBe(text);
        expect(portablePort.utf8.read(into, at, at + length)).toBe(text);
      }),
    );
    for (const port of [nodePort, portablePort]) {
      expect(() => port.utf8.read(Uint8Array.of(0x61, 0xff), 0, 2)).toThrow(TypeError);
      expect(() => port.utf8.read(Uint8Array.of(0xed, 0xa0, 0x80), 0, 3)).toThrow(TypeError);
      expect(port.utf8.read(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), 0, 4)).toBe("\ufeffa");
    }
  });
});

describe("nodePort", () => {
  it("keeps its own copy of a seed and refuses one of another length", () => {
    const seed = new Uint8Array(32).fill(7);
    const key = nodePort.ed25519.keyPair(seed);
    const before = key.sign(Uint8Array.of(1));
    seed.fill(0);
    expect([...key.sign(Uint8Array.of(1))]).toEqual([...before]);
    expect(() => nodePort.ed25519.keyPair(new Uint8Array(31))).toThrow(RangeError);
  });

  it("refuses a MAC key of another port", () => {
    const foreign = portablePort.macKey(new Uint8Array(32));
    expect(() => nodePort.mac(foreign, new Uint8Array(), new Uint8Array())).toThrow(TypeError);
  });

  it("gives random bytes that do not repeat, across the edges of its pool", () => {
    const seen = new Set<string>();
    for (let round = 0; round < 2_000; round += 1) {
      seen.add(Buffer.from(nodePort.random(16)).toString("hex"));
      expect(nodePort.random(7)).toHaveLength(7);
    }
    expect(seen.size).toBe(2_000);
    expect(nodePort.random(100)).toHaveLength(100);
  });

  it("compares only arrays of one length", () => {
    expect(nodePort.equal(Uint8Array.of(1), Uint8Array.of(1))).toBe(true);
    expect(nodePort.equal(Uint8Array.of(1), Uint8Array.of(2))).toBe(false);
    expect(nodePort.equal(Uint8Array.of(1), Uint8Array.of(1, 2))).toBe(false);
  });

  it("never shows a MAC key", () => {
    expect(JSON.stringify(nodePort.macKey(new Uint8Array(32).fill(65)))).toBe('{"kind":"mac-key"}');
  });
});
