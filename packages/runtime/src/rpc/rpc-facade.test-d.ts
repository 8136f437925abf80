import { defineApi, defineApp, defineError, defineService, rpc, use } from "@trellis/contract";
import type { CallErrors, CancelledError } from "@trellis/protocol";
import { Type } from "typebox";
import { describe, expectTypeOf, it } from "vitest";
import type { ConnectedClient } from "../client/trellis-client.ts";
import type { ConnectedService } from "../service/connected-service.ts";

const Taken = defineError("Taken", { data: Type.Object({ by: Type.String() }) });
const Closed = defineError("Closed");
const shop = defineApi("test.shop@v1", {
  rpc: {
    "Shop.Book": rpc({
      input: Type.Object({ name: Type.String() }),
      output: Type.Object({ seat: Type.Integer() }),
      errors: [Taken, Closed],
    }),
    "Shop.Ping": rpc(),
  },
});
const app = defineApp("test.app", { uses: [use(shop, { rpc: ["Shop.Book"] })] });
const shopService = defineService("test.shop-service", { implements: [shop] });

declare const client: ConnectedClient<typeof app>;
declare const service: ConnectedService<typeof shopService>;

describe("the facade of callers", () => {
  it("takes the input and nothing else", () => {
    void client.rpc.shop.book({ name: "Ada" });
    // @ts-expect-error - a wrong field is an error where it is written
    void client.rpc.shop.book({ nmae: "Ada" });
    // @ts-expect-error - the input is not optional
    void client.rpc.shop.book();
    // @ts-expect-error - not selected by `use`
    void client.rpc.shop.ping();
  });

  it("gives the output, or exactly the declared errors and ours", async () => {
    const result = await client.rpc.shop.book({ name: "Ada" });
    if (result.isOk()) return expectTypeOf(result.value).toEqualTypeOf<{ seat: number }>();
    const { error } = result;
    expectTypeOf(error).toEqualTypeOf<
      InstanceType<typeof Taken> | InstanceType<typeof Closed> | CallErrors
    >();
    if (error.kind === "call") return expectTypeOf<CancelledError>().toExtend<typeof error>();
    switch (error.type) {
      case "Taken":
        return expectTypeOf(error.data).toEqualTypeOf<{ by: string }>();
      case "Closed":
        return undefined;
      default:
        return expectTypeOf(error).toBeNever();
    }
  });
});

describe("the facade of handlers", () => {
  it("infers input and client, and checks what is returned", () => {
    service.handle.rpc.shop.book(({ input, client: inner }) => {
      expectTypeOf(input).toEqualTypeOf<{ name: string }>();
      expectTypeOf(inner.rpc).toEqualTypeOf<typeof service.client.rpc>();
      return input.name === "x" ? new Taken({ data: { by: "y" } }) : { seat: 1 };
    });
    service.handle.rpc.shop.book(async () => new Closed());
    service.handle.rpc.shop.ping(() => undefined);
    // @ts-expect-error - the output has another form
    service.handle.rpc.shop.book(() => ({ seat: "1" }));
    const Other = defineError("Other");
    // @ts-expect-error - the action does not declare this error
    service.handle.rpc.shop.book(() => new Other());
  });
});
