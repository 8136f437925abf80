import { describe, expect, test } from "vitest";
import { z } from "zod";
import { findCatastrophe } from "./find-catastrophe.ts";

const CATASTROPHIC = [
  "^(a+)+$",
  "^(a*)*$",
  "^(a|a)*$",
  "^(a|aa)+$",
  "^(\\w+\\s?)*$",
  "^([a-z]+-?)*$",
  "^(?:(?:a|b)+c?)+$",
  "(x+x+)+y",
  "^(.*)*$",
  "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
  "^(a?){50}$",
  "^(?=(a+)+$)b",
  "^(\\p{L}+\\p{M}*)+$",
  "^((ab)*)*$",
  "^(é+)+$",
];

const FINE = [
  "^[a-z]+$",
  "^[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*)+@v[1-9][0-9]*$",
  "^([a-z]+\\.)*[a-z]+$",
  "^(?:\\.\\d+)?$",
  "^[a-z]+(-[a-z]+)*$",
  "^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d+)?)?)?$",
  "^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$",
  "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$",
  "^(\\p{L}+-)*\\p{L}+$",
  "^$",
  "",
  "^\\/(?:[^~\\/]|~0|~1)*$",
  "^[\\u{1F600}-\\u{1F64F}]+$",
  "^(a{1,3}b)*$",
];

describe("findCatastrophe", () => {
  test.each(CATASTROPHIC)("finds %s", (pattern) => {
    expect(findCatastrophe(pattern)).toMatch(/exponential/);
  });

  test.each(FINE)("lets %s pass", (pattern) => {
    expect(findCatastrophe(pattern)).toBeUndefined();
  });

  test("refuses what refers back", () => {
    expect(findCatastrophe("^(a+)\\1$")).toMatch(/refers back/);
  });

  test("lets the patterns of schema libraries pass", () => {
    const formats = [
      z.email(),
      z.uuid(),
      z.iso.datetime(),
      z.iso.date(),
      z.iso.duration(),
      z.ipv4(),
      z.ipv6(),
      z.base64(),
      z.base64url(),
      z.ulid(),
      z.nanoid(),
      z.cuid2(),
      z.e164(),
      z.jwt(),
      z.cidrv4(),
    ];
    for (const format of formats) {
      const { pattern } = z.toJSONSchema(format) as { pattern?: string };
      if (pattern !== undefined) expect([pattern, findCatastrophe(pattern)]).toEqual([pattern, undefined]);
    }
  });

  test("takes bounded time itself", () => {
    const start = performance.now();
    findCatastrophe(`^(${"[a-z]?x{0,20}".repeat(60)})*$`);
    findCatastrophe(
      `^(${Array.from({ length: 200 }, (_, i) => `k${i}`).join("|")})(,(${Array.from({ length: 100 }, (_, i) => `k${i}`).join("|")}))*$`,
    );
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});
