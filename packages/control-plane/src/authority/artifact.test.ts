import { defineApi, defineService, rpc, use } from "@trellis/contract";
import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { readArtifact, storedArtifact } from "./artifact.ts";

const stock = defineApi("acme.stock@v1", { rpc: { "Stock.Count": rpc({ input: Type.String() }) } });
const shop = defineService("acme.shop", {
  implements: [defineApi("acme.shop@v1", { rpc: { Buy: rpc() } })],
  uses: [use(stock, { optional: true })],
});

describe("an artifact", () => {
  it("keeps its digest and canonical text", () => {
    const read = readArtifact(JSON.parse(JSON.stringify(shop.artifact))).orThrow();
    expect(read.digest).toBe(shop.digest);
    expect(storedArtifact(read.text).uses[0]).toMatchObject({ api: "acme.stock@v1", optional: true });
  });

  it("is refused, with what is wrong, when it is not a participant's", () => {
    const { artifact } = shop;
    const [owned] = artifact.implements;
    for (const [value, problem] of [
      [null, /not a participant/],
      [{}, /not a participant/],
      [{ ...artifact, kind: "platform" }, /kind/],
      [{ ...artifact, id: "Acme" }, /id/],
      [{ ...artifact, id: "trellis.core" }, /platform's own/],
      [{ ...artifact, implements: [{ ...owned, id: "trellis.core@v1" }] }, /platform's own/],
      [{ ...artifact, implements: [{ ...owned, id: "acme.shop" }] }, /not an API id/],
      [{ ...artifact, implements: [{ ...owned, id: "acme.*.>@v1" }] }, /not an API id/],
      [{ ...artifact, implements: [owned, owned] }, /twice/],
      [{ ...artifact, implements: [{ ...owned, rpc: { "Buy.>": null } }] }, /rpc/],
      [{ ...artifact, uses: [{ ...artifact.uses[0], rpc: { "a b": null } }] }, /rpc/],
    ] as const) {
      const read = readArtifact(value);
      expect(read.isErr() ? read.error : "it was taken").toMatch(problem);
    }
  });
});
