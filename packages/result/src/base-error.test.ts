import { describe, expect, test } from "vitest";
import { BaseError, isBaseError, UnexpectedError } from "./index.ts";

class Gone extends BaseError {
  readonly kind = "call";
  readonly type = "Gone";
}

describe("BaseError", () => {
  test("carries its facts and an id of its own", () => {
    const error = new Gone("It is gone", {
      details: { key: "a" },
      traceId: "0".repeat(32),
      hint: "Look elsewhere",
      context: { bucket: "b" },
      cause: new Error("secret"),
    });
    expect(error.id).toMatch(/^[0-9a-f]{32}$/);
    expect(new Gone("x").id).not.toBe(error.id);
    expect(error.toSerializable()).toEqual({
      id: error.id,
      kind: "call",
      type: "Gone",
      message: "It is gone",
      details: { key: "a" },
      traceId: "0".repeat(32),
      hint: "Look elsewhere",
      context: { bucket: "b" },
    });
    expect(JSON.stringify(error)).not.toContain("secret");
    expect(Object.keys(new Gone("x", { id: "given" }).toSerializable())).toEqual([
      "id",
      "kind",
      "type",
      "message",
    ]);
    expect(new Gone("x", { id: "given" }).id).toBe("given");
  });

  test("prints its type", () => {
    const error = new Gone("It is gone");
    expect(String(error)).toBe("Gone: It is gone");
    expect(error.stack).toContain("It is gone");
    expect(error.name).toBe("Gone");
  });

  test("is known by brand, also from another copy of the package", () => {
    const foreign = Object.create(
      { [Symbol.for("trellis.error")]: true },
      { kind: { value: "call" }, type: { value: "UnexpectedError" } },
    );
    expect(foreign instanceof BaseError).toBe(true);
    expect(foreign instanceof UnexpectedError).toBe(true);
    expect(foreign instanceof Gone).toBe(false);
    expect(isBaseError(new Error("x"))).toBe(false);
    expect(new Gone("x") instanceof Gone).toBe(true);
    expect(new Gone("x") instanceof UnexpectedError).toBe(false);
  });
});

describe("UnexpectedError.from", () => {
  test("keeps one that already is one, wraps the rest", () => {
    const known = new UnexpectedError();
    expect(UnexpectedError.from(known)).toBe(known);
    const cause = new TypeError("boom");
    expect(UnexpectedError.from(cause)).toMatchObject({ message: "boom", cause });
    expect(UnexpectedError.from(new Gone("gone")).type).toBe("UnexpectedError");
  });

  test("is total", () => {
    const hostile = {
      toString() {
        throw new Error("no");
      },
    };
    for (const thrown of [undefined, null, 1, "text", Symbol("s"), hostile, Object.create(null), 10n]) {
      expect(UnexpectedError.from(thrown)).toBeInstanceOf(UnexpectedError);
    }
  });
});
