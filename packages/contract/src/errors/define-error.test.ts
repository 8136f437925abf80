import Type from "typebox";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { DefinitionError, defineError, rpc } from "../index.ts";

const OutOfStock = defineError("OutOfStock", {
  data: Type.Object({ sku: Type.String(), left: Type.Integer() }),
});

/** The message of the DefinitionError that `define` throws. */
function refusal(define: () => unknown): string {
  try {
    define();
  } catch (error) {
    expect(error).toBeInstanceOf(DefinitionError);
    return (error as DefinitionError).message;
  }
  throw new Error("nothing was refused");
}

describe("defineError", () => {
  test("makes one class for both sides", () => {
    const error = new OutOfStock({ data: { sku: "tea", left: 1 }, cause: new Error("secret") });
    expect(error).toBeInstanceOf(OutOfStock);
    expect(error).toMatchObject({
      kind: "declared",
      type: "OutOfStock",
      message: "Out of stock",
      data: { sku: "tea", left: 1 },
    });
    expect([OutOfStock.errorName, OutOfStock.name, String(error)]).toEqual([
      "OutOfStock",
      "OutOfStock",
      "OutOfStock: Out of stock",
    ]);
    expect(error.toSerializable()).toEqual({
      ...{
        id: error.id,
        kind: "declared",
        type: "OutOfStock",
        message: "Out of stock",
        data: { sku: "tea", left: 1 },
      },
    });
    expect(OutOfStock.dataSchema?.issues({ sku: 1, left: 1 })).toMatchObject([{ path: "/sku" }]);
  });

  test("can be extended, for a name of one's own in hovers", () => {
    class Full extends defineError("Full", { data: Type.Object({ n: Type.Integer() }) }) {
      get twice(): number {
        return this.data.n * 2;
      }
    }
    expect(new Full({ data: { n: 2 } })).toMatchObject({ type: "Full", twice: 4 });
    expect(rpc({ errors: [Full] }).errors["Full"]).toBe(Full);
  });

  test("takes its message from the data, and a given one first", () => {
    const Busy = defineError("HTTPBusy2", {
      data: z.object({ n: z.number() }),
      message: ({ n }) => `${n} are busy`,
    });
    expect(new Busy({ data: { n: 2 } }).message).toBe("2 are busy");
    expect(new Busy({ data: { n: 2 }, message: "busy" }).message).toBe("busy");
    expect(new (defineError("HTTPBusy2"))().message).toBe("Http busy2");
    expect(
      new (defineError("Closed", { message: "The shop is closed" }))().toSerializable(),
    ).not.toHaveProperty("data");
  });

  test("refuses data that transforms", () => {
    const When = Type.Codec(Type.String())
      .Decode((text) => text.trim())
      .Encode((text) => text);
    expect(refusal(() => defineError("Bad", { data: When }))).toMatch(/must not transform/);
  });
});
