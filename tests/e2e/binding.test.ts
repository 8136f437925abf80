import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const stock = defineApi("acme.stock@v1", { rpc: { "Stock.Where": rpc({ output: Type.String() }) } });
const other = defineApi("acme.other@v1", { rpc: { "Other.Where": rpc({ output: Type.String() }) } });
const stockService = defineService("acme.stock", { implements: [stock] });
const otherService = defineService("acme.other", { implements: [other] });
const shop = defineApp("acme.shop", { uses: [use(stock)] });

let trellis: TestTrellis;
/** Deployment ids of the two that provide the one API. */
const ids = { here: "", there: "" };

beforeAll(async () => {
  trellis = await startTrellis();
  const { core } = trellis.controlPlane;
  const here = await trellis.service(stockService, ({ handle }) => handle.rpc.stock.where(() => "here"));
  const created = await core["Core.Deployments.Create"]({
    participant: "acme.stock",
    name: "acme.stock-there",
  });
  const { deployment } = created.orThrow();
  const { seed = "" } = (await core["Core.Instances.Provision"]({ deployment: deployment.id })).orThrow();
  await trellis.service(stockService, ({ handle }) => handle.rpc.stock.where(() => "there"), { seed });
  await trellis.service(otherService, ({ handle }) => handle.rpc.other.where(() => "other"));
  Object.assign(ids, { here: here.auth.deployment, there: deployment.id });
});
afterAll(() => trellis?.stop());

function bind(input: { id?: string; api?: string; provider?: string }) {
  const { core } = trellis.controlPlane;
  return core["Core.Deployments.Bind"]({ id: "acme.shop", api: stock.id, ...input });
}

describe("an API that two deployments provide", () => {
  it("is nobody's guess: a caller is refused until one was chosen, and follows the choice while it runs", async () => {
    await expect(trellis.client(shop)).rejects.toMatchObject({ code: "trellis.bootstrap.binding_ambiguous" });
    expect((await bind({ provider: "acme.stock-there" })).orThrow()).toEqual({
      bindings: [{ api: stock.id, provider: ids.there }],
    });
    const client = await trellis.client(shop);
    expect(await client.rpc.stock.where().orThrow()).toBe("there");
    (await bind({ provider: ids.here })).orThrow();
    await eventually(async () => expect(await client.rpc.stock.where().orThrow()).toBe("here"), {
      timeout: 15_000,
    });
    const { core } = trellis.controlPlane;
    const shown = (await core["Core.Deployments.Get"]({ id: "acme.shop" })).orThrow();
    expect(shown.bindings).toEqual([{ api: stock.id, provider: ids.here }]);
    // The choice withdrawn: who has a provider keeps it, who comes anew is asked to choose again.
    expect((await bind({})).orThrow()).toEqual({ bindings: [] });
    await expect(trellis.client(shop)).rejects.toMatchObject({ code: "trellis.bootstrap.binding_ambiguous" });
    expect(await client.rpc.stock.where().orThrow()).toBe("here");
  });

  it("is bound where it is used, to one that has it, and never for the platform", async () => {
    const problem = async (input: Parameters<typeof bind>[0]) => {
      const bound = await bind(input);
      return bound.isErr() ? [bound.error.type, bound.error.message] : "bound";
    };
    expect(await problem({ id: "acme.nobody" })).toEqual([
      "NotKnown",
      'There is no deployment "acme.nobody".',
    ]);
    expect(await problem({ provider: "acme.nobody" })).toEqual([
      "NotKnown",
      'There is no deployment "acme.nobody".',
    ]);
    expect(await problem({ api: other.id, provider: "acme.other" })).toEqual([
      "BindingRefused",
      '"acme.shop" does not use acme.other@v1.',
    ]);
    expect(await problem({ provider: "acme.other" })).toEqual([
      "BindingRefused",
      '"acme.other" does not provide acme.stock@v1.',
    ]);
    expect((await problem({ id: "trellis.platform", provider: "acme.stock" }))[0]).toBe("PlatformOwned");
  });
});
