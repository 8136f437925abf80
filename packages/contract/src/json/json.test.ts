import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CanonicalJsonError, canonicalJson } from "./canonical-json.ts";
import { digestOf, digestOfText } from "./digest.ts";
import { parseStrictJson, StrictJsonError } from "./strict-json.ts";

interface Vectors {
  readonly cases: readonly {
    readonly name: string;
    readonly json: string;
    readonly canonical: string;
    readonly digest: string;
  }[];
  readonly refused: readonly { readonly name: string; readonly json: string }[];
}

function vectors(name: string): Vectors {
  const file = new URL(`../../../../conformance/contract/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as Vectors;
}

describe("canonicalJson", () => {
  test.each(vectors("canonical-json").cases)("$name", ({ json, canonical }) => {
    expect(canonicalJson(parseStrictJson(json))).toBe(canonical);
  });

  test("has no text for what JSON cannot hold, and names the place", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const refused: [unknown, string][] = [
      [{ a: [Number.NaN] }, "/a/0"],
      [Number.POSITIVE_INFINITY, ""],
      [{ "a/b~": undefined, c: { "x/y~": 10n } }, "/c/x~1y~0"],
      [[undefined], "/0"],
      [{ f: () => 1 }, "/f"],
      [{ d: new Date(0) }, "/d"],
      [{ m: new Map() }, "/m"],
      [{ s: "\ud800" }, "/s"],
      [{ "\udc00": 1 }, "/\udc00"],
      [Symbol("s"), ""],
    ];
    for (const [value, path] of refused) {
      expect(() => canonicalJson(value)).toThrow(CanonicalJsonError);
      try {
        canonicalJson(value);
      } catch (error) {
        expect((error as CanonicalJsonError).path).toBe(path);
      }
    }
    expect(() => canonicalJson(cycle)).toThrow(/nested deeper than 256/);
    const deep = JSON.parse("[".repeat(5_000) + "]".repeat(5_000)) as unknown;
    expect(() => canonicalJson(deep)).toThrow(/nested deeper than 256/);
  });

  test("leaves out members that are undefined, keeps objects without a prototype", () => {
    expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
    expect(canonicalJson(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}');
  });

  test("reads back as it was, whatever the order of keys", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        let text: string;
        try {
          text = canonicalJson(value);
        } catch (error) {
          expect(JSON.stringify(value)).toMatch(/\\ud[89a-f]/i);
          expect(error).toBeInstanceOf(CanonicalJsonError);
          return;
        }
        // A canonical text holds no -0, so compare what the two texts say.
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(canonicalJson(reversed(value))).toBe(text);
        expect(canonicalJson(parseStrictJson(JSON.stringify(value, null, 2)))).toBe(text);
      }),
    );
  });
});

/** The same value with the members of every object in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
}

describe("parseStrictJson", () => {
  test.each(vectors("canonical-json").refused)("refuses: $name", ({ json }) => {
    expect(() => parseStrictJson(json)).toThrow(StrictJsonError);
  });

  test("agrees with JSON.parse on what both read", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test("is total: any text gives a value or a StrictJsonError", () => {
    const piece = fc.constantFrom(
      ...'{}[],:"\\ \t\n-+.eE0123456789truefalsn\u00a0\ufeff'.split(""),
      '"a"',
      '"\\u0061"',
      "null",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join("");
        try {
          const value = parseStrictJson(text);
          expect(value).toEqual(JSON.parse(text));
        } catch (error) {
          expect(error).toBeInstanceOf(StrictJsonError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("keeps a member called __proto__ inert", () => {
    const value = parseStrictJson('{"__proto__":{"admin":true}}') as object;
    expect(Object.getOwnPropertyNames(value)).toEqual(["__proto__"]);
    expect("admin" in value).toBe(false);
    expect(Object.hasOwn(Object.prototype, "admin")).toBe(false);
  });

  test("bounds nesting and takes long texts", () => {
    expect(() => parseStrictJson("[".repeat(100_000))).toThrow(/nested deeper/);
    const long = JSON.stringify({
      text: "aé\\n".repeat(1_000_000),
      list: Array.from({ length: 50_000 }, (_, i) => i),
    });
    expect(parseStrictJson(long)).toEqual(JSON.parse(long));
  });
});

describe("digestOf", () => {
  test.each(vectors("digest").cases)("$name", ({ canonical, digest }) => {
    expect(digestOfText(canonical)).toBe(digest);
    expect(digestOf(JSON.parse(canonical))).toBe(digest);
  });

  test("is SHA-256 of UTF-8 in base64url, for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const expected = createHash("sha256").update(JSON.stringify(text), "utf8").digest("base64url");
        expect(digestOf(text)).toBe(expected);
      }),
    );
  });

  test("tells NFC from NFD", () => {
    expect(digestOf("caf\u00e9")).not.toBe(digestOf("cafe\u0301"));
  });
});
