import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { portablePort } from "../port/portable.ts";
import { safeFileName } from "./file-name.ts";
import { decodeListCursor, encodeListCursor } from "./list-cursor.ts";
import { decodeObjectDigest, encodeObjectDigest } from "./object-digest.ts";
import { decodeObjectMeta, encodeObjectMeta, type ObjectMeta } from "./object-meta.ts";
import { decodeStoreKey, encodeStoreKey, storeKeyProblem } from "./store-key.ts";

const names = [
  "a.b",
  "a_b",
  "dir/sub/file.txt",
  "../x",
  " leading space",
  "tab\tname",
  "🦀",
  "é",
  "e\u0301",
  "a",
  "ab",
  "abc",
  "x".repeat(255),
  "x".repeat(1_024),
  "*",
  ">",
  "\0",
];

describe("keys of objects", () => {
  it("round-trip byte for byte, and none shares a subject with another", () => {
    for (const name of names) {
      const token = encodeStoreKey(name);
      expect(token).toMatch(/^[A-Za-z0-9_-]+={0,2}$/);
      expect(token.length % 4).toBe(0);
      expect(Buffer.from(token, "base64url").toString("utf8")).toBe(name);
      expect(decodeStoreKey(token)).toBe(name);
    }
    expect(new Set(names.map(encodeStoreKey)).size).toBe(names.length);
  });

  it("are refused when they are empty, too long or no text", () => {
    expect(storeKeyProblem("")).toBe("is empty");
    expect(storeKeyProblem("x".repeat(1_025))).toMatch(/longer/);
    expect(storeKeyProblem("ü".repeat(513))).toMatch(/longer/);
    expect(storeKeyProblem("\ud800")).toMatch(/surrogate/);
    expect(() => encodeStoreKey("")).toThrow(TypeError);
  });

  it("are read from their one spelling only", () => {
    for (const token of ["", "=", "YQ", "YQ=", "YR==", "YQ==.x", "a+b=", "YQ===", "/w=="])
      expect(decodeStoreKey(token), token).toBeUndefined();
  });
});

describe("descriptions of objects", () => {
  const meta: ObjectMeta = {
    key: "a/b",
    chunksId: "abc",
    size: 3,
    chunks: 1,
    deleted: false,
    digest: encodeObjectDigest(portablePort.sha256(new Uint8Array(3))),
    contentType: "text/plain",
    metadata: { author: "x\r\nEvil: 1", ünï: "a: b: c", "": " padded " },
  };

  it("keep every pair of text exactly", () => {
    const text = encodeObjectMeta("bucket", meta);
    expect(decodeObjectMeta(JSON.parse(text), "a/b")).toEqual(meta);
  });

  it("speak for the key of their subject only", () => {
    expect(decodeObjectMeta(JSON.parse(encodeObjectMeta("bucket", meta)), "a/c")).toBeUndefined();
  });

  it("cannot name chunks by a wildcard, lie about counts or leave out the digest", () => {
    const good = JSON.parse(encodeObjectMeta("bucket", meta)) as Record<string, unknown>;
    const bad = [
      { nuid: ">" },
      { nuid: "a.b" },
      { nuid: "*" },
      { nuid: 5 },
      { nuid: undefined },
      { size: -1 },
      { size: 2 ** 60 },
      { size: "3" },
      { chunks: 1.5 },
      { digest: "MD5=x" },
      { digest: undefined },
    ];
    for (const change of bad) expect(decodeObjectMeta({ ...good, ...change }, "a/b")).toBeUndefined();
    for (const value of [null, 1, "x", [], {}]) expect(decodeObjectMeta(value, "a/b")).toBeUndefined();
  });

  it("of links are told apart: they have no bytes", () => {
    expect(decodeObjectMeta({ name: "l", options: { link: { bucket: "b" } } }, "l")).toEqual({ link: true });
  });

  it("of deleted objects need no digest", () => {
    const value = { name: "a", bucket: "b", nuid: "n", size: 0, chunks: 0, digest: "", deleted: true };
    expect(decodeObjectMeta(value, "a")).toMatchObject({ deleted: true });
  });

  it("are read whatever they hold, without a throw", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => void decodeObjectMeta(value, "a")));
  });
});

describe("digests", () => {
  it("are read with and without padding", () => {
    const hash = portablePort.sha256(new Uint8Array(0));
    const text = encodeObjectDigest(hash);
    expect(text).toBe("SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=");
    expect(decodeObjectDigest(text)).toEqual(hash);
    expect(decodeObjectDigest(text.slice(0, -1))).toEqual(hash);
    for (const bad of [
      "",
      "SHA-256=",
      "SHA-256=AAAA",
      "sha-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=",
    ])
      expect(decodeObjectDigest(bad)).toBeUndefined();
  });

  it("come piece by piece to the same as at once", () => {
    const stream = portablePort.sha256Stream();
    stream.update(new Uint8Array([1, 2]));
    stream.update(new Uint8Array(0));
    stream.update(new Uint8Array([3]));
    expect(stream.digest()).toEqual(portablePort.sha256(new Uint8Array([1, 2, 3])));
  });
});

describe("cursors", () => {
  it("belong to their prefix", () => {
    const cursor = encodeListCursor({ prefix: "a/", key: "a/ü" });
    expect(decodeListCursor(cursor, "a/")).toBe("a/ü");
    expect(decodeListCursor(cursor, "a")).toBeUndefined();
    expect(decodeListCursor(encodeListCursor({ prefix: "a/", key: "b" }), "a/")).toBeUndefined();
    for (const bad of ["", "x", "!!", "bnVsbA", "WzEsIiJd"])
      expect(decodeListCursor(bad, "")).toBeUndefined();
  });
});

describe("file names of keys", () => {
  it.each([
    ["../evil", "evil"],
    ["/etc/passwd", "passwd"],
    ["a/../../evil", "evil"],
    ["..\\evil", "evil"],
    ["C:\\x\\y.txt", "y.txt"],
    ['x"; filename=evil', "x_; filename=evil"],
    ["x\r\nSet-Cookie: a=b", "x__Set-Cookie_ a=b"],
    ["CON", "_CON"],
    ["con.txt", "_con.txt"],
    ["com1", "_com1"],
    [".", "_"],
    ["..", "__"],
    ["a/..", "__"],
    ["\0", "_"],
    ["///", "_"],
    ["name. ", "name__"],
    ["report.pdf", "report.pdf"],
    ["日本/報告.txt", "報告.txt"],
    ["evil\u202etxt.exe", "evil_txt.exe"],
  ])("%j is saved as %j", (key, name) => {
    expect(safeFileName(key)).toBe(name);
  });

  it("fit a file system, and never lead out of a folder", () => {
    expect(Buffer.byteLength(safeFileName("🦀".repeat(300)))).toBeLessThanOrEqual(200);
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (key) => {
        const name = safeFileName(key);
        expect(name).not.toMatch(/[/\\\0\r\n]/);
        expect(["", ".", ".."]).not.toContain(name);
      }),
    );
  });
});
