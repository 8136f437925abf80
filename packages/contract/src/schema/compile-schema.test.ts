import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type as ark } from "arktype";
import Type from "typebox";
import System from "typebox/system";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { compileSchema } from "./compile-schema.ts";
import { schema } from "./schema.ts";
import type { SchemaLike } from "./schema-like.ts";

afterEach(() => {
  System.Settings.Reset();
});

/** Each schema freshly made, so that the mode at hand compiles it. */
function inBothModes(
  make: () => SchemaLike,
  check: (accepts: (value: unknown) => boolean, mode: string) => void,
): void {
  for (const useAcceleration of [true, false]) {
    System.Settings.Set({ useAcceleration });
    const compiled = compileSchema(make());
    check((value) => compiled.issues(value) === undefined, useAcceleration ? "compiled" : "interpreted");
  }
}

describe("the same schema in four libraries", () => {
  const person: Record<string, SchemaLike> = {
    typebox: Type.Object({ name: Type.String({ maxLength: 4 }), age: Type.Optional(Type.Number()) }),
    zod: z.object({ name: z.string().max(4), age: z.number().optional() }),
    valibot: toStandardJsonSchema(
      v.object({ name: v.pipe(v.string(), v.maxLength(4)), age: v.optional(v.number()) }),
    ),
    arktype: ark({ name: "string <= 4", "age?": "number" }),
  };

  test.each(Object.entries(person))("%s", (_, library) => {
    const compiled = compileSchema(library);
    expect(compiled.issues({ name: "Ada", age: 36 })).toBeUndefined();
    expect(compiled.decode({ name: "Ada" })).toEqual({ ok: true, value: { name: "Ada" } });
    expect(compiled.issues({ name: "Augusta" })).toMatchObject([{ path: "/name" }]);
    expect(compiled.issues({ name: 1 })).toMatchObject([{ path: "/name" }]);
    expect(compiled.issues(undefined)).toMatchObject([{ path: "" }]);
    expect(compiled.json).toMatchObject({
      type: "object",
      required: ["name"],
      properties: { name: { type: "string", maxLength: 4 }, age: { type: "number" } },
    });
    expect(compileSchema(library)).toBe(compiled);
  });
});

describe("TypeBox", () => {
  test("counts the length of a text in code points, in both modes", () => {
    const verdicts: [string, boolean, boolean][] = [
      ["abcd", true, true],
      ["abcde", false, true],
      ["😀😀😀😀", true, true],
      ["e\u0301e\u0301", true, true],
      ["e\u0301e\u0301e\u0301", false, true],
      ["👨‍👩‍👧‍👦", false, true],
      ["🇩🇪🇫🇷", true, true],
      ["🇩🇪", true, false],
      ["\ud800", true, false],
      ["\ud800\ud800\ud800\ud800\ud800", false, true],
    ];
    inBothModes(
      () => Type.String({ maxLength: 4 }),
      (accepts, mode) => {
        for (const [text, most] of verdicts) expect([mode, text, accepts(text)]).toEqual([mode, text, most]);
      },
    );
    inBothModes(
      () => Type.String({ minLength: 4 }),
      (accepts, mode) => {
        for (const [text, , least] of verdicts)
          expect([mode, text, accepts(text)]).toEqual([mode, text, least]);
      },
    );
  });

  test("multipleOf takes money, in both modes", () => {
    inBothModes(
      () => Type.Object({ price: Type.Number({ multipleOf: 0.01 }), n: Type.Integer({ multipleOf: 5 }) }),
      (accepts) => {
        for (const price of [
          143.47,
          143.48,
          0.07,
          4.35,
          1e20,
          123456789.12,
          0,
          -0.01,
          1e9 + 0.01,
          0.1 + 0.2,
        ]) {
          expect([price, accepts({ price, n: 10 })]).toEqual([price, true]);
        }
        for (const price of [0.015, 143.485, 0.001, 1.0000001]) expect(accepts({ price, n: 10 })).toBe(false);
        expect(accepts({ price: 1, n: 11 })).toBe(false);
        expect(accepts({ price: "1", n: 10 })).toBe(false);
      },
    );
    const compiled = compileSchema(Type.Object({ price: Type.Number({ multipleOf: 0.01 }) }));
    expect(compiled.issues({ price: 0.001 })).toEqual([
      { path: "/price", message: "must be a multiple of 0.01" },
    ]);
    expect(compiled.json).toMatchObject({ properties: { price: { multipleOf: 0.01 } } });
  });

  test("a property may be called like a keyword", () => {
    const Price = Type.Number({ multipleOf: 0.01 });
    const compiled = compileSchema(
      Type.Object({ default: Price, const: Price, multipleOf: Price, pattern: Price }),
    );
    const prices = { default: 123456789.12, const: 143.48, multipleOf: 1, pattern: 2 };
    expect(compiled.issues(prices)).toBeUndefined();
    expect(compiled.issues({ ...prices, const: 0.001 })).toMatchObject([{ path: "/const" }]);
  });

  test("never searches a text that is too long, nor when it collects the errors", () => {
    const slow = "^\\s*\\s*\\s*$";
    inBothModes(
      () => Type.Object({ a: Type.String({ maxLength: 16, pattern: slow }) }),
      (accepts) => {
        const start = performance.now();
        expect(accepts({ a: `${" ".repeat(20_000)}x` })).toBe(false);
        expect(performance.now() - start).toBeLessThan(200);
        expect([accepts({ a: "  " }), accepts({ a: " x" })]).toEqual([true, false]);
      },
    );
    const compiled = compileSchema(Type.Object({ a: Type.String({ maxLength: 16, pattern: "^a" }) }));
    expect(compiled.issues({ a: "b" })).toEqual([{ path: "/a", message: "must match the pattern ^a" }]);
    expect(compiled.json).toMatchObject({ properties: { a: { maxLength: 16, pattern: "^a" } } });
  });

  test("takes whole numbers however they are written", () => {
    inBothModes(
      () => Type.Integer(),
      (accepts) => {
        expect([1.0, 1e3, 2 ** 53, -0].every(accepts)).toBe(true);
        expect([1.5, Number.NaN, Number.POSITIVE_INFINITY, "1"].some(accepts)).toBe(false);
      },
    );
  });

  test("never corrects: no defaults, no conversion, no dropped members", () => {
    const compiled = compileSchema(
      Type.Object({ a: Type.Optional(Type.String({ default: "x" })), n: Type.Optional(Type.Number()) }),
    );
    const extra = { unknown: [{ deep: 1 }] };
    expect(compiled.decode(extra)).toEqual({ ok: true, value: extra });
    expect(compiled.decode({ n: "1" })).toMatchObject({ ok: false });
    expect(compiled.transforms).toBe(false);
  });

  test("unions keep what a looser branch does not name; closed objects refuse by path", () => {
    const union = compileSchema(
      Type.Union([Type.Object({ a: Type.String() }), Type.Object({ a: Type.String(), b: Type.String() })]),
    );
    expect(union.decode({ a: "1", b: "2" })).toEqual({ ok: true, value: { a: "1", b: "2" } });
    const closed = compileSchema(
      Type.Object({ inner: Type.Object({ a: Type.String() }, { additionalProperties: false }) }),
    );
    expect(closed.issues({ inner: { a: "1", b: 2 } })).toMatchObject([
      { path: "/inner/b", message: "must not be there" },
      { path: "/inner" },
    ]);
  });

  test("runs codecs on the receiving side, leaves the given value alone", () => {
    const When = Type.Codec(Type.String())
      .Decode((text) => new Date(text))
      .Encode((date) => date.toISOString());
    const compiled = compileSchema(Type.Object({ at: When, list: Type.Array(When) }));
    const sent = { at: "2026-01-31T00:00:00.000Z", list: ["2026-02-01T00:00:00.000Z"], extra: 1 };
    expect(compiled.transforms).toBe(true);
    expect(compiled.issues(sent)).toBeUndefined();
    expect(compiled.decode(sent)).toEqual({
      ok: true,
      value: { at: new Date(sent.at), list: [new Date(sent.list[0] ?? "")], extra: 1 },
    });
    expect(sent.at).toBe("2026-01-31T00:00:00.000Z");
    expect(compiled.json).toMatchObject({ properties: { at: { type: "string" } } });
    const throwing = Type.Codec(Type.String())
      .Decode((): string => {
        throw new Error("not a unit");
      })
      .Encode((text) => text);
    expect(compileSchema(throwing).decode("x")).toEqual({
      ok: false,
      issues: [{ path: "", message: "not a unit" }],
    });
    expect(
      compileSchema(Type.Object({ "a/b": Type.Array(throwing) })).decode({ "a/b": ["x"] }),
    ).toMatchObject({
      issues: [{ path: "/a~1b/0" }],
    });
  });

  test("runs codecs in unions, records, tuples and recursive types", () => {
    const Length = Type.Codec(Type.String())
      .Decode((text) => text.length)
      .Encode((n) => "x".repeat(n));
    const union = Type.Union([
      Type.Object({ a: Type.String() }),
      Type.Object({ a: Type.String(), b: Length }),
    ]);
    expect(compileSchema(union).decode({ a: "1", b: "22", c: 1 })).toEqual({
      ok: true,
      value: { a: "1", b: 2, c: 1 },
    });
    expect(compileSchema(Type.Record(Type.String(), Length)).decode({ k: "333" })).toEqual({
      ok: true,
      value: { k: 3 },
    });
    expect(compileSchema(Type.Tuple([Length, Type.String()])).decode(["1", "1"])).toEqual({
      ok: true,
      value: [1, "1"],
    });
    const Tree = Type.Cyclic(
      { Tree: Type.Object({ n: Length, kids: Type.Array(Type.Ref("Tree")) }) },
      "Tree",
    );
    expect(compileSchema(Tree).decode({ n: "1", kids: [{ n: "22", kids: [] }] })).toEqual({
      ok: true,
      value: { n: 1, kids: [{ n: 2, kids: [] }] },
    });
  });

  test("keeps unknown members beside a codec inside an intersection", () => {
    const When = Type.Codec(Type.String())
      .Decode((text) => text.length)
      .Encode((n) => "x".repeat(n));
    const compiled = compileSchema(
      Type.Intersect([Type.Object({ at: When }), Type.Object({ b: Type.String() })]),
    );
    expect(compiled.decode({ at: "abc", b: "1", extra: true })).toEqual({
      ok: true,
      value: { at: 3, b: "1", extra: true },
    });
  });

  test("writes regular expressions as text", () => {
    expect(compileSchema(Type.String({ pattern: /^a$/ })).json).toEqual({ type: "string", pattern: "^a$" });
  });

  test("no payload reaches a prototype", () => {
    const compiled = compileSchema(Type.Object({ a: Type.Optional(Type.String()) }));
    for (const text of ['{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{"admin":true}}}']) {
      compiled.decode(JSON.parse(text));
      expect(Object.hasOwn(Object.prototype, "admin")).toBe(false);
    }
  });
});

describe("Standard Schema", () => {
  test("decodes by the library's own meaning", () => {
    const compiled = compileSchema(
      z.object({ at: z.string().transform((text) => new Date(text)), n: z.number().default(3) }),
    );
    const sent = { at: "2026-01-31" };
    expect(compiled.issues(sent)).toBeUndefined();
    expect(compiled.decode(sent)).toEqual({ ok: true, value: { at: new Date("2026-01-31"), n: 3 } });
    expect(compiled.json).toMatchObject({ required: ["at"], properties: { at: { type: "string" } } });
  });

  test("gives JSON pointers", () => {
    const compiled = compileSchema(z.object({ "a/b~c": z.array(z.object({ n: z.number() })) }));
    expect(compiled.issues({ "a/b~c": [{ n: 1 }, { n: "2" }] })).toMatchObject([{ path: "/a~1b~0c/1/n" }]);
  });

  test("a schema that throws or waits is an issue, not a crash", () => {
    const throwing = z.string().transform(() => {
      throw new Error("bug");
    });
    expect(compileSchema(throwing).decode("x")).toMatchObject({
      ok: false,
      issues: [{ message: expect.stringMatching(/threw/) }],
    });
    const waiting = z.string().refine(async () => true);
    expect(compileSchema(waiting).decode("x")).toMatchObject({ ok: false });
  });

  test("says what to do where there is no JSON Schema", () => {
    expect(() => compileSchema(v.object({ a: v.string() })).json).toThrow(/toStandardJsonSchema/);
    expect(() => compileSchema(z.date()).json).toThrow(
      /zod schema.*cannot be written as JSON Schema.*transform/,
    );
    const bare = {
      "~standard": { version: 1 as const, vendor: "own", validate: (value: unknown) => ({ value }) },
    };
    expect(() => compileSchema(bare).json).toThrow(/schema\(yourSchema, \{ json \}\)/);
    const given = compileSchema(schema(bare, { json: { type: "string" } }));
    expect(given.json).toEqual({ type: "string" });
    expect(given.decode(3)).toEqual({ ok: true, value: 3 });
  });

  test("refuses what is no schema", () => {
    for (const value of [{ type: "string" }, { "~standard": { version: 1, vendor: "x" } }]) {
      expect(() => compileSchema(value as SchemaLike)).toThrow(/neither a TypeBox schema nor/);
    }
  });

  test("asks a toJsonSchema method where there is no other way", () => {
    const old = {
      "~standard": { version: 1 as const, vendor: "old", validate: (value: unknown) => ({ value }) },
      toJsonSchema: () => ({ type: "number" }),
    };
    expect(compileSchema(old).json).toEqual({ type: "number" });
  });
});

test("a valid small object costs well under a microsecond", () => {
  const compiled = compileSchema(
    Type.Object({
      id: Type.String({ maxLength: 64 }),
      qty: Type.Integer({ minimum: 1 }),
      tags: Type.Array(Type.String()),
    }),
  );
  const value = { id: "order-1", qty: 2, tags: ["a", "b"] };
  const rounds = 200_000;
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 5; attempt++) {
    const start = performance.now();
    for (let round = 0; round < rounds; round++) compiled.issues(value);
    best = Math.min(best, ((performance.now() - start) / rounds) * 1_000);
  }
  expect(best).toBeLessThan(1);
});
