import { describe, expect, it } from "vitest";
import { portablePort as port } from "../port/portable.ts";
import { isToken } from "../subjects/token.ts";
import { isId, newId } from "./ulid.ts";

describe("newId", () => {
  it("is a ULID: the time of the specification's example, sorted by time, one subject token", () => {
    expect(newId(port, 1_469_918_176_385).slice(0, 10)).toBe("01ARYZ6S41");
    const ids = [0, 1, 999, 1_764_540_000_000, 2 ** 48 - 1].map((now) => newId(port, now));
    expect([...ids].sort()).toEqual(ids);
    expect(ids.every((id) => id.length === 26 && isId(id) && isToken(id))).toBe(true);
  });

  it("spells its random bits as they are", () => {
    const fixed = { ...port, random: (length: number) => new Uint8Array(length).fill(0xff) };
    expect(newId(fixed, 0)).toBe("0000000000ZZZZZZZZZZZZZZZZ");
    const counted = { ...port, random: (length: number) => Uint8Array.from({ length }, (_, index) => index) };
    // 80 bits 00 01 02 ... 09, five at a time.
    expect(newId(counted, 0)).toBe("0000000000000G40R40M30E209");
  });

  it("does not repeat, and takes any clock", () => {
    const ids = new Set(Array.from({ length: 1_000 }, () => newId(port, 1)));
    expect(ids.size).toBe(1_000);
    for (const now of [-1, 1.5, Number.MAX_SAFE_INTEGER]) expect(isId(newId(port, now))).toBe(true);
    for (const text of ["", "01ARYZ6S41", "81ARYZ6S410000000000000000", "01ARYZ6S41IIIIIIIIIIIIIIII"]) {
      expect(isId(text)).toBe(false);
    }
  });
});
