import { defineApi, defineApp, defineService, rpc, use } from "@trellis/contract";
import { AuthError } from "@trellis/protocol";
import { connectClientWith, connectServiceWith, nodePlatform } from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Link } from "../../packages/runtime/src/connect/link.ts";
import { Attacker } from "./attacker.ts";
import { tamperedSource } from "./http.ts";
import { type Stock, shop, startScene, startStock, startVault, stock, stockService, vault } from "./scene.ts";

let trellis: TestTrellis;
let provider: Stock;

beforeAll(async () => {
  trellis = await startScene();
  provider = await startStock(trellis);
  await startVault(trellis);
});
afterAll(() => trellis?.stop());

/** A shop that was rebuilt to call what it may not. */
const greedyShop = defineApp("acme.shop", {
  uses: [
    use(stock, { rpc: ["Stock.Count", "Stock.Slow", "Stock.Destroy"] }),
    use(vault, { rpc: ["Vault.Open"] }),
  ],
});

async function connectGreedyShop() {
  const source = tamperedSource(trellis, { participant: shop, change: (answer) => answer });
  const client = await connectClientWith(
    { participant: greedyShop, root: trellis.root, trellisUrl: trellis.url, runtime: { log: false } },
    { source, platform: nodePlatform },
  ).orThrow();
  // It was told the truth, and makes itself believe something else.
  const link = client.connection;
  if (!(link instanceof Link)) throw new Error("A connection is something else than a link now.");
  for (const granted of link.session.grants.calls) {
    const api = greedyShop.uses.find((used) => used.api.id === granted.api)?.api;
    Object.assign(granted, { rpc: Object.keys(api?.rpc ?? {}) });
  }
  return client;
}

/** A stock service that was rebuilt to provide what it was never installed with. */
const grownStock = defineApi("acme.stock@v1", {
  rpc: { ...stock.rpc, "Stock.Extra": rpc({ output: Type.String() }) },
});
const grownService = defineService("acme.stock", { implements: [grownStock] });

describe("an action that was not installed", () => {
  it("cannot be provided: the start fails at once and names it, and the other replica goes on", async () => {
    const source = tamperedSource(trellis, { participant: stockService, change: (answer) => answer });
    const service = await connectServiceWith(
      { participant: grownService, root: trellis.root, trellisUrl: trellis.url, runtime: { log: false } },
      { source, platform: nodePlatform },
    ).orThrow();
    service.handle.rpc.stock.extra(() => "extra");
    service.handle.rpc.stock.count(() => 0);
    const started = performance.now();
    const failed = await service.start().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(failed).toMatchObject({ type: "AuthError", reason: "denied_by_broker" });
    expect(String(failed)).toContain("Stock.Extra");
    // What did not start as a whole serves nothing.
    const honest = await trellis.client(shop);
    const counts = await Promise.all(
      Array.from({ length: 20 }, () => honest.rpc.stock.count("four").orThrow()),
    );
    expect(new Set(counts)).toEqual(new Set([4]));
    await service.stop();
  });
});

describe("an action that was not granted", () => {
  it("is refused by the process itself, naming what to do", async () => {
    const honest = await trellis.client(shop);
    const refused = await honest.request("Stock.Destroy", "everything");
    expect(refused.isErr() && refused.error.type).toBe("NotFoundError");
  });

  it("is refused by the broker at once, as an AuthError, and disturbs nobody else", async () => {
    await using client = await connectGreedyShop();
    const slow = Array.from({ length: 20 }, (_, at) => client.rpc.stock.slow(`s${at}`, { timeout: 15_000 }));
    await expect.poll(() => provider.slow.size).toBe(20);

    const started = performance.now();
    const refused = await client.rpc.stock.destroy("everything", { timeout: 10_000 });
    expect(performance.now() - started).toBeLessThan(1_000);
    const error = refused.isErr() ? refused.error : undefined;
    expect(error).toBeInstanceOf(AuthError);
    expect(error).toMatchObject({ type: "AuthError", reason: "denied_by_broker" });

    // The same action again, and another API's: each is told on its own.
    const both = await Promise.all([
      client.rpc.stock.destroy("again", { timeout: 10_000 }),
      client.rpc.vault.open(undefined, { timeout: 10_000 }),
    ]);
    expect(both.map((result) => result.isErr() && result.error.type)).toEqual(["AuthError", "AuthError"]);
    expect(performance.now() - started).toBeLessThan(2_000);

    for (const answer of provider.slow.values()) answer();
    const results = await Promise.all(slow);
    expect(results.map((result) => result.orThrow())).toEqual(
      Array.from({ length: 20 }, (_, at) => `s${at}`),
    );
    expect(client.connection.status.phase).toBe("connected");
    expect(provider.handled.filter((call) => call.startsWith("destroy"))).toEqual([]);
    expect((await client.rpc.stock.count("four")).orThrow()).toBe(4);
  });

  it("is refused by the provider too, when the broker would have let it through", async () => {
    await using attacker = await Attacker.join(trellis, shop);
    // The platform's own connection into the account may publish anywhere: it stands for a broker that is too lax.
    const lax = trellis.controlPlane.plane.links.app;
    const granted = attacker.shot(stock.id, "Stock.Count", "one");
    const denied = attacker.shot(stock.id, "Stock.Destroy", "everything");
    const echoes = [granted, denied].map(
      (shot) =>
        new Promise((resolve) => {
          attacker.hear(shot.reply, resolve);
          lax.publish(shot.subject, shot.bytes, { reply: shot.reply });
        }),
    );
    const [allowed, refused] = await Promise.all(echoes);
    expect(allowed).toMatchObject({ authentic: true, results: [{ status: 0, payload: 3 }] });
    expect(refused).toMatchObject({
      authentic: true,
      results: [{ status: 1, payload: { type: "AuthError", details: { reason: "not_granted" } } }],
    });
    expect(provider.handled.filter((call) => call.startsWith("destroy"))).toEqual([]);
  });
});
