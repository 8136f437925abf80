import type { JsonObject } from "@trellis/result";
import fc from "fast-check";
import Type from "typebox";
import { Check } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { compileSchema, type SchemaLike } from "../index.ts";
import { subsetFindings } from "./schema-subset.ts";

const json = (schema: SchemaLike): JsonObject => compileSchema(schema).json;
const reasons = (from: JsonObject, to: JsonObject): string[] =>
  subsetFindings(from, to).map((f) => `${f.path}: ${f.reason}`);

const Str: JsonObject = { type: "string" };
const Node = Type.Cyclic({ Node: Type.Object({ kids: Type.Array(Type.Ref("Node")) }) }, "Node");
const Wider = Type.Cyclic(
  { Node: Type.Object({ name: Type.Optional(Type.String()), kids: Type.Array(Type.Ref("Node")) }) },
  "Node",
);
const Named = Type.Cyclic(
  { Node: Type.Object({ name: Type.String(), kids: Type.Array(Type.Ref("Node")) }) },
  "Node",
);
const tagged = z.discriminatedUnion("t", [
  z.object({ t: z.literal("a"), n: z.number() }),
  z.object({ t: z.literal("b"), s: z.string() }),
]);
const moreTagged = z.discriminatedUnion("t", [...tagged.options, z.object({ t: z.literal("c") })]);

describe("every value of the first fits the second", () => {
  test.each<[string, JsonObject, JsonObject]>([
    ["the same", json(Type.Object({ a: Type.String() })), json(Type.Object({ a: Type.String() }))],
    ["anything", json(Type.Object({ a: Type.String() })), {}],
    [
      "an optional member more",
      json(Type.Object({ a: Type.String() })),
      json(Type.Object({ a: Type.String(), b: Type.Optional(Type.Number()) })),
    ],
    [
      "a member less",
      json(Type.Object({ a: Type.String(), b: Type.Number() })),
      json(Type.Object({ a: Type.String() })),
    ],
    [
      "required to optional",
      json(Type.Object({ a: Type.String() })),
      json(Type.Object({ a: Type.Optional(Type.String()) })),
    ],
    [
      "closed to open",
      json(Type.Object({ a: Type.String() }, { additionalProperties: false })),
      json(Type.Object({ a: Type.String() })),
    ],
    ["integer to number", { type: "integer" }, { type: "number" }],
    [
      "looser limits",
      { type: "string", minLength: 2, maxLength: 3 },
      { type: "string", minLength: 1, maxLength: 4 },
    ],
    [
      "an open bound inside a closed one",
      { type: "number", exclusiveMinimum: 0 },
      { type: "number", minimum: 0 },
    ],
    [
      "a closed bound inside an open one",
      { type: "number", minimum: 1, maximum: 2 },
      { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 3 },
    ],
    ["a multiple of a multiple", { type: "number", multipleOf: 0.5 }, { type: "number", multipleOf: 0.1 }],
    ["listed values", { enum: ["a", "b"] }, { enum: ["a", "b", "c"] }],
    ["listed values by type", { enum: ["a", 1] }, { anyOf: [Str, { type: "number" }] }],
    [
      "a branch more",
      json(Type.Union([Type.String(), Type.Null()])),
      json(Type.Union([Type.Null(), Type.Number(), Type.String()])),
    ],
    ["a list of types", { type: ["string", "null"] }, json(Type.Union([Type.String(), Type.Null()]))],
    ["tagged unions", json(tagged), json(moreTagged)],
    [
      "an intersection",
      json(Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })])),
      json(Type.Object({ a: Type.String(), b: Type.String() })),
    ],
    [
      "into an intersection",
      json(Type.Object({ a: Type.String(), b: Type.String() })),
      json(Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })])),
    ],
    ["recursion", json(Node), json(Wider)],
    ["recursion inside", json(Type.Object({ tree: Named })), json(Type.Object({ tree: Node }))],
    [
      "a record",
      json(Type.Record(Type.String(), Type.Integer())),
      json(Type.Record(Type.String(), Type.Number())),
    ],
    [
      "a record of another library",
      json(z.record(z.string(), z.int())),
      { type: "object", additionalProperties: { type: "number" } },
    ],
    [
      "a tuple",
      json(Type.Tuple([Type.Integer(), Type.String()])),
      json(Type.Tuple([Type.Number(), Type.String()])),
    ],
    ["a list", json(Type.Array(Type.Integer(), { maxItems: 3 })), json(Type.Array(Type.Number()))],
    [
      "the same pattern and format",
      { type: "string", pattern: "^a", format: "uuid" },
      { type: "string", pattern: "^a", format: "uuid" },
    ],
    ["a keyword less", { type: "string", pattern: "^a", contentEncoding: "base64" }, Str],
    [
      "the same beyond our subset",
      { type: "array", contains: Str, minContains: 2 },
      { type: "array", contains: Str, minContains: 2 },
    ],
  ])("%s", (_, from, to) => {
    expect(reasons(from, to)).toEqual([]);
  });
});

describe("a reason and a place where a value may not fit", () => {
  test.each<readonly [string, JsonObject, JsonObject, string]>([
    [
      "another type",
      json(Type.Object({ a: Type.String() })),
      json(Type.Object({ a: Type.Number() })),
      "/a: string is not accepted, only number",
    ],
    ["no type", {}, Str, ": only string is accepted"],
    ["number to integer", { type: "number" }, { type: "integer" }, ": number is not accepted, only integer"],
    [
      "a required member more",
      json(Type.Object({})),
      json(Type.Object({ a: Type.String() })),
      "/a: it is required and may be missing",
    ],
    [
      "optional to required",
      json(Type.Object({ a: Type.Optional(Type.String()) })),
      json(Type.Object({ a: Type.String() })),
      "/a: it is required and may be missing",
    ],
    [
      "open to closed",
      json(Type.Object({})),
      json(Type.Object({}, { additionalProperties: false })),
      ": unknown members were allowed and are refused",
    ],
    [
      "a member that a closed object does not know",
      json(Type.Object({ a: Type.String() }, { additionalProperties: false })),
      json(Type.Object({}, { additionalProperties: false })),
      "/a: it is not known here, and the object is closed",
    ],
    ["tighter length", Str, { type: "string", maxLength: 3 }, ": longer texts are refused (maxLength 3)"],
    [
      "tighter minimum",
      { type: "number", minimum: 0 },
      { type: "number", minimum: 1 },
      ": smaller numbers are refused",
    ],
    [
      "closed to open bound",
      { type: "number", minimum: 0 },
      { type: "number", exclusiveMinimum: 0 },
      ": smaller numbers are refused",
    ],
    [
      "tighter maximum",
      { type: "number" },
      { type: "number", exclusiveMaximum: 9 },
      ": larger numbers are refused",
    ],
    [
      "another step",
      { type: "number", multipleOf: 0.1 },
      { type: "number", multipleOf: 0.5 },
      ": only multiples of 0.5 are accepted",
    ],
    ["a value less", { enum: ["a", "b"] }, { enum: ["a"] }, ': "b" is not accepted'],
    ["text to listed values", Str, { enum: ["a"] }, ": only listed values are accepted"],
    ["a branch less", json(Type.Union([Type.String(), Type.Null()])), Str, ": null is not accepted"],
    [
      "deep in a list",
      json(Type.Array(Type.Object({ n: Type.Number() }))),
      json(Type.Array(Type.Object({ n: Type.Integer() }))),
      "/*/n: number is not accepted, only integer",
    ],
    ["a new pattern", Str, { type: "string", pattern: "^a" }, ": pattern was added or changed"],
    [
      "a new format",
      { type: "string", format: "uuid" },
      { type: "string", format: "email" },
      ": format was added or changed",
    ],
    [
      "an unknown keyword",
      Str,
      { type: "string", contentEncoding: "base64" },
      ": contentEncoding was added or changed",
    ],
    ["a tagged branch less", json(moreTagged), json(tagged), ": none of the alternatives takes it"],
    [
      "an untagged oneOf",
      { type: "string" },
      { oneOf: [{ type: "string" }, { minLength: 1 }] },
      ": oneOf without a distinguishing constant cannot be compared",
    ],
    ["recursion", json(Node), json(Named), "/name: it is required and may be missing"],
    [
      "a record's values",
      json(Type.Record(Type.String(), Type.Number())),
      json(Type.Record(Type.String(), Type.Integer())),
      "/*: number is not accepted, only integer",
    ],
    [
      "members of a record that get a rule",
      { type: "object", additionalProperties: { type: "number" } },
      json(Type.Object({ a: Type.Optional(Type.String()) })),
      "/a: number is not accepted, only string",
    ],
    [
      "a record into a closed object",
      json(Type.Record(Type.String(), Type.Number())),
      json(Type.Object({}, { additionalProperties: false })),
      ": members like",
    ],
    [
      "repeated items",
      { type: "array" },
      { type: "array", uniqueItems: true },
      ": repeated items are refused",
    ],
    [
      "what hangs together and is not understood",
      { type: "array", contains: Str, minContains: 0 },
      { type: "array", contains: Str },
      ": contains was added or changed",
    ],
    [
      "unevaluated members",
      { type: "object", properties: { a: Str }, unevaluatedProperties: false },
      { type: "object", unevaluatedProperties: false },
      ": unevaluatedProperties was added or changed",
    ],
    [
      "a reference into nowhere",
      { $ref: "#/$defs/x" },
      { $ref: "#/$defs/y" },
      ": $unresolved was added or changed",
    ],
    ["nothing", Str, { not: {} }, ": not was added or changed"],
  ])("%s", (...row) => {
    const [, from, to, reason] = row;
    expect(reasons(from, to).join("\n")).toContain(reason);
  });
});

test("no finding means that every value fits (over random schemas and values)", () => {
  const scalar = fc.constantFrom<JsonObject>(
    Str,
    { type: "integer", minimum: 0 },
    { type: "number", maximum: 3 },
    { type: "number", exclusiveMaximum: 3, multipleOf: 0.5 },
    { type: "boolean" },
    { type: "null" },
    { enum: ["a", 1, null] },
    { const: "a" },
    { type: "string", maxLength: 1 },
    { type: "string", minLength: 1, pattern: "^a" },
    { type: ["string", "null"] },
    {},
  );
  const { node } = fc.letrec<{ node: JsonObject }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      scalar,
      fc.record({ type: fc.constant("array"), items: tie("node"), maxItems: fc.constantFrom(1, 2) }),
      fc.record({ anyOf: fc.array(tie("node"), { minLength: 1, maxLength: 3 }) }),
      fc.record({ allOf: fc.array(tie("node"), { minLength: 1, maxLength: 2 }) }),
      fc
        .record({ a: tie("node"), b: tie("node"), required: fc.subarray(["a", "b"]), closed: fc.boolean() })
        .map(
          ({ a, b, required, closed }): JsonObject => ({
            type: "object",
            properties: { a, b },
            required,
            ...(closed && { additionalProperties: false }),
          }),
        ),
      fc.record({ type: fc.constant("object"), additionalProperties: tie("node") }),
    ),
  }));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>("a", "ab", "", "b", 0, 1, -1, 2.5, 3, 4, null, true),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b"), tie("value")),
    ),
  }));
  let compared = 0;
  fc.assert(
    fc.property(node, node, fc.array(value, { maxLength: 12 }), (from, to, values) => {
      if (subsetFindings(from, to).length > 0) return;
      compared++;
      for (const one of values) {
        if (Check(from, one)) expect([from, to, one, Check(to, one)]).toEqual([from, to, one, true]);
      }
    }),
    { numRuns: 3_000 },
  );
  expect(compared).toBeGreaterThan(50);
});
