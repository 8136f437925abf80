import { defineApi, defineService, event } from "@trellis/contract";
import { Type } from "typebox";
import { expectTypeOf, test } from "vitest";
import type { EventPayloads, PrepareByName, PublishByName } from "./event-publishers.ts";

const orders = defineApi("acme.orders@v1", {
  events: {
    "Order.Placed": event({ payload: Type.Object({ id: Type.String() }) }),
    Noted: event({ payload: Type.Object({ text: Type.String() }) }),
  },
});
const shop = defineService("acme.shop", { implements: [orders] });

test("publishing by name knows the names and the payload of each", () => {
  expectTypeOf<EventPayloads<typeof shop>>().toEqualTypeOf<{
    "Order.Placed": { id: string };
    Noted: { text: string };
  }>();
  type Payloads = EventPayloads<typeof shop>;
  const check = (prepare: PrepareByName<Payloads>, publish: PublishByName<Payloads>) => {
    prepare("Noted", { text: "x" });
    void publish("Order.Placed", { id: "1" }, { timeout: 100 });
    // @ts-expect-error: another event's payload
    prepare("Noted", { id: "1" });
    // @ts-expect-error: no such event
    void publish("Order.Gone", { id: "1" });
  };
  expectTypeOf(check).toBeFunction();
});
