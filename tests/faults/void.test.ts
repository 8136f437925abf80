import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWork, type Working } from "./kit.ts";

const values: Record<string, unknown> = {
  null: null,
  "the empty text": "",
  zero: 0,
  "minus zero": -0,
  false: false,
  "an empty list": [],
  "an empty object": {},
  "something like an error": { id: "1", kind: "call", type: "TimeoutError", message: "not one" },
  "something like a Result": { ok: false, error: "none" },
};

describe("nothing, and what looks like nothing", () => {
  let working: Working;
  const inputs: unknown[] = [];

  beforeAll(async () => {
    working = await startWork({
      setup({ handle }) {
        handle.rpc.work.nothing(({ input }) => void inputs.push(input));
        handle.rpc.work.give(({ input }) => values[input.what]);
      },
    });
  });
  afterAll(() => working[Symbol.asyncDispose]());

  it("is called with (), (undefined) and by name; the handler sees undefined, the caller gets undefined", async () => {
    const { rpc, request } = working.client;
    expect((await rpc.work.nothing()).orThrow()).toBeUndefined();
    expect((await rpc.work.nothing(undefined)).orThrow()).toBeUndefined();
    expect((await rpc.work.nothing(undefined, { timeout: 1_000 })).orThrow()).toBeUndefined();
    for (const input of [undefined, null, {}])
      expect((await request("Work.Nothing", input)).isOk()).toBe(true);
    expect(inputs).toEqual(Array.from({ length: 6 }, () => undefined));
  });

  for (const [what, value] of Object.entries(values)) {
    it(`${what} comes back as itself`, async () => {
      const given = (await working.client.rpc.work.give({ what })).orThrow();
      expect(Object.is(given, value) || JSON.stringify(given) === JSON.stringify(value)).toBe(true);
      expect(given).toStrictEqual(value);
    });
  }
});
