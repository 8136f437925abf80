import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allocate } from "./allocate.ts";
import { fromBase64Url, toBase64Url } from "./base64url.ts";
import { concatBytes } from "./concat.ts";
import { fromHex, toHex } from "./hex.ts";
import { readU16, readU32, readU64, writeU16, writeU32, writeU64 } from "./integers.ts";
import { placeTranscript, transcript } from "./transcript.ts";
import { hasLoneSurrogate, utf8Bytes, utf8Length, utf8Text, writeUtf8 } from "./utf8.ts";

const bytes = fc.uint8Array({ maxLength: 100 });
const text = fc.string({ unit: "binary", maxLength: 60 });

describe("base64url", () => {
  it("is that of the platform, both ways", () => {
    fc.assert(
      fc.property(bytes, (value) => {
        expect(toBase64Url(value)).toBe(Buffer.from(value).toString("base64url"));
        expect(fromBase64Url(toBase64Url(value))).toEqual(Uint8Array.from(value));
      }),
    );
  });

  it("has one spelling for each value: any other text is refused", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 12 }), fc.stringMatching(/^[\w-]{0,12}$/)), (value) => {
        const read = fromBase64Url(value);
        if (read !== undefined) expect(toBase64Url(read)).toBe(value);
      }),
      { numRuns: 2_000 },
    );
    for (const value of ["A", "AB", "YQ==", "YQ=", " YQ", "YQ\n", "+A", "/A", "é", "YR"]) {
      expect(fromBase64Url(value)).toBeUndefined();
    }
  });
});

describe("hexadecimal", () => {
  it("reads what it wrote, and nothing else", () => {
    fc.assert(
      fc.property(bytes, (value) => {
        expect(fromHex(toHex(value))).toEqual(Uint8Array.from(value));
      }),
    );
    for (const value of ["0", "0G", "AA", "0x", " 00"]) expect(fromHex(value)).toBeUndefined();
  });
});

describe("integers", () => {
  it("are big-endian and come back", () => {
    const into = new Uint8Array(8);
    fc.assert(
      fc.property(
        fc.nat(Number.MAX_SAFE_INTEGER),
        fc.nat(0xffff_ffff),
        fc.nat(0xffff),
        (large, middle, small) => {
          writeU64(into, 0, large);
          expect(new DataView(into.buffer).getBigUint64(0)).toBe(BigInt(large));
          expect(readU64(into, 0)).toBe(large);
          writeU32(into, 0, middle);
          expect(readU32(into, 0)).toBe(middle);
          writeU16(into, 0, small);
          expect(readU16(into, 0)).toBe(small);
        },
      ),
    );
    expect(readU64(Uint8Array.of(0, 0x20, 0, 0, 0, 0, 0, 0), 0)).toBeUndefined();
  });
});

describe("UTF-8", () => {
  it("is that of the platform", () => {
    fc.assert(
      fc.property(text, fc.nat(5), (value, at) => {
        const expected = Buffer.from(value, "utf8");
        expect(utf8Length(value)).toBe(expected.length);
        const into = new Uint8Array(at + expected.length);
        expect(writeUtf8(into, value, at)).toBe(expected.length);
        expect(toHex(into.subarray(at))).toBe(expected.toString("hex"));
        expect(utf8Text(utf8Bytes(value))).toBe(value);
      }),
    );
  });

  it("counts a lone surrogate as what it is written as", () => {
    for (const value of ["\ud800", "a\udc00b", "\ud800\ud800\udc00"]) {
      expect(hasLoneSurrogate(value)).toBe(true);
      expect(utf8Length(value)).toBe(Buffer.byteLength(value, "utf8"));
      expect(writeUtf8(new Uint8Array(20), value, 0)).toBe(Buffer.byteLength(value, "utf8"));
    }
    expect(hasLoneSurrogate("a😀é")).toBe(false);
  });

  it("reads no invalid bytes", () => {
    expect(utf8Text(Uint8Array.of(0xff))).toBeUndefined();
    expect(utf8Text(Uint8Array.of(0xc0, 0x80))).toBeUndefined();
  });
});

describe("transcript", () => {
  const fields = fc.array(fc.oneof(text, bytes), { maxLength: 5 });
  const plain = (list: readonly (string | Uint8Array)[]): unknown =>
    list.map((field) => toHex(typeof field === "string" ? utf8Bytes(field) : field));

  it("differs for any two lists of fields that differ", () => {
    fc.assert(
      fc.property(fc.tuple(text, fields), fc.tuple(text, fields), ([labelA, a], [labelB, b]) => {
        const same = JSON.stringify([labelA, plain(a)]) === JSON.stringify([labelB, plain(b)]);
        expect(toHex(transcript(labelA, ...a)) === toHex(transcript(labelB, ...b))).toBe(same);
      }),
    );
    expect(toHex(transcript("a", "bc"))).not.toBe(toHex(transcript("ab", "c")));
    expect(toHex(transcript("a"))).not.toBe(toHex(transcript("a", "")));
  });

  it("of a place is the same by the quick way", () => {
    const any = fc.oneof(text, fc.string({ maxLength: 300 }));
    fc.assert(
      fc.property(any, any, any, (label, subject, reply) => {
        expect(toHex(placeTranscript(label, subject, reply))).toBe(toHex(transcript(label, subject, reply)));
      }),
    );
  });
});

describe("allocate", () => {
  it("gives zeroed arrays that do not overlap", () => {
    const made = Array.from({ length: 200 }, (_, index) => allocate(index * 50).fill(index % 251));
    expect(
      made.every((array, index) => array.length === index * 50 && array.every((b) => b === index % 251)),
    ).toBe(true);
    expect(allocate(100).every((byte) => byte === 0)).toBe(true);
  });

  it("joins", () => {
    expect([...concatBytes(Uint8Array.of(1), new Uint8Array(), Uint8Array.of(2, 3))]).toEqual([1, 2, 3]);
  });
});
