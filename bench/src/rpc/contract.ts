import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import { Type } from "typebox";

const Item = Type.Object({
  id: Type.String(),
  name: Type.String(),
  qty: Type.Integer(),
  tags: Type.Array(Type.String()),
  note: Type.String(),
});

export const echo = defineApi("bench.echo@v1", {
  rpc: {
    "Echo.Item": rpc({ input: Item, output: Item }),
    "Echo.Alone": rpc({ input: Item, output: Item, coalesce: false }),
    "Echo.Slow": rpc({ input: Item, output: Type.Object({ replica: Type.String() }) }),
  },
});

export const echoService = defineService("bench.echo-service", { implements: [echo] });
export const benchApp = defineApp("bench.app", { uses: [use(echo)] });

/** An item whose JSON has the given length in bytes. */
export function itemOf(bytes: number) {
  const item = { id: "01HZX3K7Y8M2N4P6Q8R0S2T4V6", name: "Ada Lovelace", qty: 3, tags: ["a", "b"], note: "" };
  return { ...item, note: "x".repeat(bytes - JSON.stringify(item).length) };
}
