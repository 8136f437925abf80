import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { portablePort as port } from "../port/portable.ts";
import { decodeJson, decodeJsonBytes, decodeJsonList } from "./decode.ts";
import { encodeJson } from "./encode.ts";

function issuesOf(value: unknown): Record<string, string> {
  const encoded = encodeJson(value);
  return encoded.ok ? {} : Object.fromEntries(encoded.issues.map(({ path, message }) => [path, message]));
}

function roundTrip(value: unknown): unknown {
  const encoded = encodeJson(value);
  if (!encoded.ok) throw new Error(JSON.stringify(encoded.issues));
  const decoded = decodeJson(encoded.text);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.issues));
  return decoded.value;
}

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const withOwn = (key: string): object => Object.defineProperty({}, key, { value: 1, enumerable: true });

describe("encodeJson", () => {
  it("writes what reads back equal, -0 included", () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: "medium", stringUnit: "binary" }), (value) => {
        if (JSON.stringify(value).includes("__proto__")) return;
        expect(roundTrip(value)).toStrictEqual(value);
      }),
      { numRuns: 1_000 },
    );
    expect(roundTrip([-0, { a: -0 }, 0, "-0", 1e21, 1e-7, 0.1 + 0.2, 2 ** 53 + 2])).toStrictEqual([
      -0,
      { a: -0 },
      0,
      "-0",
      1e21,
      1e-7,
      0.1 + 0.2,
      2 ** 53 + 2,
    ]);
    expect(encodeJson(-0)).toEqual({ ok: true, text: "-0" });
  });

  it("writes long texts as they are, whatever they hold", () => {
    for (const end of ["", '"', "\\", "\n", "\0", "\u001f", "\u007f", "\u2028", "é", "😀", "\\ud800"]) {
      const text = "x".repeat(5_000) + end;
      expect(roundTrip([text, { [text]: text, zero: -0 }])).toStrictEqual([text, { [text]: text, zero: -0 }]);
      expect(encodeJson([text])).toEqual({ ok: true, text: JSON.stringify([text]) });
    }
    expect(Object.keys(issuesOf({ a: `${"x".repeat(5_000)}\ud800` }))).toEqual(["/a"]);
  });

  it("keeps empty values apart", () => {
    for (const value of [null, "", 0, false, [], {}]) expect(roundTrip(value)).toStrictEqual(value);
    expect(encodeJson(undefined)).toEqual({ ok: true, text: "null" });
  });

  it("leaves out members that are undefined", () => {
    expect(encodeJson({ a: undefined, b: -0, c: { d: undefined } })).toEqual({
      ok: true,
      text: '{"b":-0,"c":{}}',
    });
  });

  it.each([
    ["NaN", Number.NaN],
    ["an infinity", Number.POSITIVE_INFINITY],
    ["a bigint", 10n],
    ["a symbol", Symbol("s")],
    ["a function", () => 1],
    ["a Date", new Date(0)],
    ["an invalid Date", new Date(Number.NaN)],
    ["a Map", new Map([[1, 2]])],
    ["a Set", new Set([1])],
    ["bytes", Uint8Array.of(1)],
    ["an Error", new Error("x")],
    ["a RegExp", /x/],
    ["a boxed number", Object(1)],
    ["an instance of a class", new (class Order {})()],
    ["an object with toJSON", { toJSON: () => 1 }],
    ["an array with toJSON", Object.assign([1], { toJSON: () => 1 })],
    ["a promise", Promise.resolve(1)],
    ["a lone surrogate", "\ud800"],
  ])("refuses %s with its place", (_name, value) => {
    expect(Object.keys(issuesOf({ a: [1, { "b/~": value }] }))).toEqual(["/a/1/b~1~0"]);
    expect(Object.keys(issuesOf(value))).toEqual([""]);
  });

  it("refuses undefined and holes in arrays", () => {
    expect(Object.keys(issuesOf([1, undefined]))).toEqual(["/1"]);
    expect(Object.keys(issuesOf(Array(2)))).toEqual(["/0", "/1"]);
  });

  it("names every place, but not without end", () => {
    expect(Object.keys(issuesOf({ a: Number.NaN, b: 1n, c: 1 }))).toEqual(["/a", "/b"]);
    expect(Object.keys(issuesOf(Array.from({ length: 1_000 }, () => Number.NaN)))).toHaveLength(20);
  });

  it("refuses cycles and depth over 64", () => {
    const cycle: { self?: unknown; other?: unknown } = {};
    cycle.self = cycle;
    cycle.other = cycle;
    expect(issuesOf({ cycle })).toEqual({
      "/cycle/self": "contains itself",
      "/cycle/other": "contains itself",
    });
    expect(encodeJson(nested(64)).ok).toBe(true);
    expect(encodeJson(nested(65)).ok).toBe(false);
    expect(encodeJson(nested(5_000)).ok).toBe(false);
  });

  it("takes one object in two places", () => {
    const shared = { x: 1 };
    expect(roundTrip([shared, shared])).toEqual([{ x: 1 }, { x: 1 }]);
  });

  it("refuses __proto__ and lone surrogates in names", () => {
    expect(Object.keys(issuesOf({ a: withOwn("__proto__") }))).toEqual(["/a/__proto__"]);
    expect(Object.keys(issuesOf({ a: withOwn("\udc00") }))).toEqual(["/a"]);
  });

  it("takes text that looks like an escape, records without a prototype and those of another realm", () => {
    expect(roundTrip("\\ud800")).toBe("\\ud800");
    expect(roundTrip(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 });
    expect(roundTrip(runInNewContext("({ a: [1] })"))).toEqual({ a: [1] });
    expect(encodeJson(runInNewContext("new Date()")).ok).toBe(false);
  });

  it("never throws", () => {
    const throwing = {
      get a(): number {
        throw new Error("secret");
      },
    };
    expect(issuesOf(throwing)).toEqual({ "": "cannot be read as JSON" });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(encodeJson(proxy).ok).toBe(false);
  });
});

describe("decodeJson", () => {
  it("reads empty text as null, and says nothing of what it cannot read", () => {
    expect(decodeJson("")).toEqual({ ok: true, value: null });
    for (const text of [" ", "{", "undefined", "NaN", "{'a':1}", "1 2", "\ufeff1", '{"password":"x"']) {
      expect(decodeJson(text)).toEqual({ ok: false, issues: [{ path: "", message: "is not JSON" }] });
    }
  });

  it("refuses __proto__ in every spelling, anywhere", () => {
    for (const name of [
      "__proto__",
      "\\u005f_proto__",
      "__prot\\u006F__",
      "\\u005f\\u005fproto\\u005f\\u005f",
    ]) {
      const decoded = decodeJson(`{"a":[{"${name}":{"admin":true}}]}`);
      expect(decoded).toEqual({
        ok: false,
        issues: [{ path: "/a/0/__proto__", message: "must not be called __proto__" }],
      });
    }
    expect("admin" in {}).toBe(false);
  });

  it("refuses half of a surrogate pair in every spelling, in texts and names, of one value and of a list", () => {
    for (const half of [
      "\\ud800",
      "\\uD83D",
      "\\uDE00",
      "\\udfff\\ud800",
      "\\ud83dx\\ude00",
      "\\\\\\uD800",
    ]) {
      const issues = [{ path: "/a/0/b", message: "has a lone surrogate" }];
      expect(decodeJson(`{"a":[{"b":"${half}"}]}`)).toEqual({ ok: false, issues });
      expect(decodeJson(`{"a":{"${half}":1}}`)).toEqual({
        ok: false,
        issues: [{ path: "/a", message: "has a member name with a lone surrogate" }],
      });
      expect(decodeJson(`"${half}"`)).toMatchObject({ ok: false, issues: [{ path: "" }] });
      const list = new TextEncoder().encode(`[1,{"b":"${half}"}]`);
      expect(decodeJsonList(port, list)).toMatchObject({ ok: false, issues: [{ path: "/1/b" }] });
    }
    for (const text of ["\\ud83d\\ude00", "\\uD83D\\uDE00", "\\\\ud800", "\\u00e9", "😀"])
      expect(decodeJson(`{"${text}":["${text}"]}`).ok).toBe(true);
  });

  it("reads nothing that could not be written again", () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: "binary" }), fc.string({ unit: "binary" }), (json, text) => {
        const spelled = json.replaceAll(
          /[^ -~]/g,
          (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
        );
        const units = [...Array(text.length).keys()].map(
          (at) =>
            `\\u${text
              .charCodeAt(text.length - 1 - at)
              .toString(16)
              .padStart(4, "0")}`,
        );
        for (const one of [json, spelled, `"${units.join("")}"`]) {
          const decoded = decodeJson(one);
          if (decoded.ok) expect(encodeJson(decoded.value).ok).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("leaves other names alone", () => {
    const text = '{"constructor":{"prototype":{"admin":true}},"a":"__proto__","\\u00e9":1}';
    const decoded = decodeJson(text);
    expect(decoded.ok && JSON.stringify(decoded.value)).toBe(JSON.stringify(JSON.parse(text)));
    expect("admin" in {}).toBe(false);
  });

  it("bounds the depth, of lists, of records and of both, without a stack overflow", () => {
    const lists = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
    const records = (depth: number): string => '{"a":'.repeat(depth) + "1" + "}".repeat(depth);
    const both = (pairs: number): string => '{"a":['.repeat(pairs) + "]}".repeat(pairs);
    for (const text of [lists(64), records(64), both(32), `[${"[],{},".repeat(500)}1]`]) {
      expect(decodeJson(text).ok).toBe(true);
    }
    // Few of either bracket, but one inside the other.
    const mixed = records(40).replace("1", lists(30));
    for (const text of [lists(65), records(65), both(33), mixed, lists(100_000), records(10_000)]) {
      expect(decodeJson(text).ok).toBe(false);
    }
  });

  it("never throws on any text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => void decodeJson(text)),
      { numRuns: 1_000 },
    );
  });

  it("of bytes refuses what is not UTF-8", () => {
    expect(decodeJsonBytes(port, Uint8Array.of(0x22, 0xff, 0x22)).ok).toBe(false);
    expect(decodeJsonBytes(port, new Uint8Array())).toEqual({ ok: true, value: null });
    expect(decodeJsonBytes(port, new TextEncoder().encode('"é"'))).toEqual({ ok: true, value: "é" });
  });
});
