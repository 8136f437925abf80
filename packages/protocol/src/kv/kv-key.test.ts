import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kvEntryKind } from "./kv-entry.ts";
import { decodeKvKey, encodeKvKey, kvKeyProblem, kvPrefixFilter, MAX_KV_KEY_LENGTH } from "./kv-key.ts";
import { kvPrefix, kvStreamName, kvWatchPrefix } from "./kv-subject.ts";

/** Keys of the cases: wildcards, dots, other people's subjects, unicode, control characters. */
const hostile = [
  "*",
  ">",
  "a.*",
  "a.>",
  "foo*",
  ".",
  "a..b",
  ".a",
  "a.",
  "$KV.other.x",
  "a:b",
  "a+b==",
  "me@x.org",
  "a b",
  "Zürich",
  "🦀",
  "a/b",
  "/",
  "//",
  "/a",
  "a/",
  "A",
  "a",
  "\0",
  "x\r\nPUB evil 0\r\n\r\n",
  "=",
  "=YQ",
  "_",
  "-",
  "é",
  "e\u0301",
  "k".repeat(600),
  "ü".repeat(600),
];

describe("keys of a bucket", () => {
  it("come back from the subject as they were, whatever they hold", () => {
    for (const key of hostile) {
      const encoded = encodeKvKey(key);
      // What NATS' own clients take for a key.
      expect(encoded).toMatch(/^[-/_=.a-zA-Z0-9]+$/);
      expect(encoded).not.toMatch(/^\.|\.$|\.\./);
      expect(decodeKvKey(encoded)).toBe(key);
    }
  });

  it("never share a subject", () => {
    expect(new Set(hostile.map(encodeKvKey)).size).toBe(hostile.length);
    const text = fc.string({ unit: "binary", minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        if (kvKeyProblem(a) !== undefined || kvKeyProblem(b) !== undefined) return;
        expect(decodeKvKey(encodeKvKey(a))).toBe(a);
        expect(encodeKvKey(a) === encodeKvKey(b)).toBe(a === b);
      }),
    );
  });

  it("stay readable where they can: a NATS tool shows them", () => {
    expect(encodeKvKey("orders/2024/o-1_x")).toBe("orders.2024.o-1_x");
    expect(encodeKvKey("orders/a.b")).toBe("orders.=YS5i");
    expect(encodeKvKey("a//b")).toBe("a.=.b");
  });

  it("are refused by name when there is no way to keep them", () => {
    expect(kvKeyProblem("")).toBe("is empty");
    expect(kvKeyProblem("a\ud800")).toMatch(/lone surrogate/);
    expect(kvKeyProblem("k".repeat(MAX_KV_KEY_LENGTH + 1))).toBe("is too long");
    expect(kvKeyProblem("ü".repeat(1_200))).toBe("is too long");
    expect(() => encodeKvKey("")).toThrow(TypeError);
    expect(() => encodeKvKey("a/\udc00")).toThrow(TypeError);
  });

  it("are read from their one spelling only", () => {
    for (const subject of [
      "",
      "=",
      ".a",
      "a.",
      "a..b",
      "=YQ",
      "=YS9i",
      "=YR",
      "a*",
      "a.>",
      "a b",
      "=YQ==",
      "é",
    ])
      expect(decodeKvKey(subject), subject).toBeUndefined();
  });
});

describe("prefixes of keys", () => {
  it("are filters that the broker applies, as far as they end with a segment", () => {
    expect(kvPrefixFilter("")).toEqual({ tokens: ">", exact: true });
    expect(kvPrefixFilter("a/")).toEqual({ tokens: "a.>", exact: true });
    expect(kvPrefixFilter("a/b")).toEqual({ tokens: "a.>", exact: false });
    expect(kvPrefixFilter("us")).toEqual({ tokens: ">", exact: false });
    expect(kvPrefixFilter("a.b/")).toEqual({ tokens: "=YS5i.>", exact: true });
    expect(kvPrefixFilter("/")).toEqual({ tokens: "=.>", exact: true });
    expect(() => kvPrefixFilter("\ud800/")).toThrow(TypeError);
    expect(() => kvPrefixFilter(`${"ü".repeat(2_000)}/`)).toThrow(TypeError);
  });

  it("never leave out a key that begins with them", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "b", ".", "/", "*", "ü"),
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(text, fc.nat(8), (key, length) => {
        const { tokens, exact } = kvPrefixFilter(key.slice(0, length));
        const stem = tokens.slice(0, -1);
        expect(encodeKvKey(key).startsWith(stem) || key === key.slice(0, length)).toBe(true);
        if (exact && encodeKvKey(key).startsWith(stem))
          expect(key.startsWith(key.slice(0, length))).toBe(true);
      }),
    );
  });

  it("that are themselves a key with a slash at the end hold that key", () => {
    // `a/` is the tokens `a` and `=`: it is below `a`.
    expect(encodeKvKey("a/")).toBe("a.=");
  });
});

describe("what a stored message is", () => {
  const kind = (headers: Record<string, string>) => kvEntryKind({ get: (name) => headers[name] });

  it("follows from its headers", () => {
    expect(kind({})).toEqual({ kind: "value", version: 1 });
    expect(kind({ "KV-Operation": "PUT" })).toEqual({ kind: "value", version: 1 });
    expect(kind({ "Trellis-Version": "3" })).toEqual({ kind: "value", version: 3 });
    expect(kind({ "KV-Operation": "DEL" })).toEqual({ kind: "deleted" });
    expect(kind({ "KV-Operation": "PURGE" })).toEqual({ kind: "deleted" });
    expect(kind({ "Nats-Marker-Reason": "MaxAge" })).toEqual({ kind: "deleted" });
    expect(kind({ "KV-Operation": "MERGE" }).kind).toBe("unreadable");
    for (const version of ["0", "-1", "1.5", "x", "", "99999999999"])
      expect(kind({ "Trellis-Version": version }).kind).toBe("unreadable");
  });

  it("lies at subjects made of plain tokens only", () => {
    expect(kvStreamName("b_1")).toBe("KV_b_1");
    expect(kvPrefix("b")).toBe("$KV.b");
    expect(kvWatchPrefix("b")).toBe("kvw.v1.b");
    for (const make of [kvStreamName, kvPrefix, kvWatchPrefix]) expect(() => make("b.>")).toThrow(TypeError);
  });
});
