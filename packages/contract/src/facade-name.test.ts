import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { facadeNames } from "./facade-name.test-d.ts";
import { facadeName } from "./facade-name.ts";

interface Vectors {
  readonly cases: readonly { readonly name: string; readonly group: string; readonly leaf: string }[];
}

const file = new URL("../../../conformance/contract/facade-names.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(file, "utf8")) as Vectors;

test.each(cases)("$name is $group.$leaf", ({ name, group, leaf }) => {
  expect(facadeName(name)).toEqual({ group, leaf });
});

test("the types say the same as the function, and cover every vector", () => {
  for (const [name, place] of Object.entries(facadeNames)) expect(facadeName(name)).toEqual(place);
  expect(Object.keys(facadeNames).sort()).toEqual(cases.map(({ name }) => name).sort());
});

test("gives identifiers for every action name", () => {
  const segment = fc.stringMatching(/^[A-Za-z][A-Za-z0-9]{0,5}$/);
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), (segments) => {
      const { group, leaf } = facadeName(segments.join("."));
      expect(group).toMatch(/^[a-z][A-Za-z0-9]*$/);
      expect(leaf).toMatch(/^[a-z][A-Za-z0-9]*$/);
    }),
  );
});
