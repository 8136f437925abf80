import { defineApi, defineApp, event, reserved, rpc, use } from "@trellis/contract";
import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { eventsApi } from "../events/api.ts";
import { storedArtifact } from "./artifact.ts";
import { grantedUses, withListening } from "./platform-access.ts";

const orders = defineApi("acme.orders@v1", {
  rpc: { "Orders.Get": rpc() },
  events: { "Order.Placed": event({ payload: Type.Object({ id: Type.String() }) }) },
});

function usesOf(app: { readonly artifact: object }, granted: readonly string[]): Record<string, string[]> {
  const artifact = storedArtifact(JSON.stringify(app.artifact));
  const uses = withListening(artifact, grantedUses(artifact.uses, granted).uses);
  return Object.fromEntries(uses.map(({ api, rpc: names }) => [api, Object.keys(names).sort()]));
}

describe("asking for listeners", () => {
  it("is given to whoever uses events, without a grant, and to nobody else", () => {
    const board = defineApp("acme.board", { uses: [use(orders)] });
    expect(usesOf(board, [])).toEqual({
      "acme.orders@v1": ["Orders.Get"],
      "trellis.events@v1": ["Events.Listen"],
    });
    const caller = defineApp("acme.caller", { uses: [use(orders, { rpc: ["Orders.Get"] })] });
    expect(usesOf(caller, [])).toEqual({ "acme.orders@v1": ["Orders.Get"] });
  });

  it("gives nothing else of the platform to those who ask for more", () => {
    const greedy = defineApp("acme.greedy", { uses: [use(orders), use(eventsApi)] }, reserved);
    expect(usesOf(greedy, [])["trellis.events@v1"]).toEqual(["Events.Listen"]);
    expect(usesOf(greedy, ["Events.Recent"])["trellis.events@v1"]).toEqual([
      "Events.Listen",
      "Events.Recent",
    ]);
  });
});
