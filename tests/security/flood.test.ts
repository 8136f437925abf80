import { nodePlatform, nodePort as port } from "@trellis/runtime/node";
import { type FaultProxy, startFaultProxy, type TestTrellis } from "@trellis/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Attacker } from "./attacker.ts";
import { type Stock, shop, startScene, startStock, startVault, stock } from "./scene.ts";

let trellis: TestTrellis;
let proxy: FaultProxy;
let provider: Stock;
let flooder: Attacker;

beforeAll(async () => {
  trellis = await startScene();
  // A look-up takes as long as it does across a region: there are never enough of them under way.
  proxy = await startFaultProxy({ target: trellis.controlPlane.nats?.url ?? "" });
  proxy.delay(20);
  const dial: (typeof nodePlatform)["dial"] = (options) =>
    nodePlatform.dial({ ...options, servers: [`nats://${proxy.address}`] });
  provider = await startStock(trellis, { platform: { dial } });
  await startVault(trellis);
  flooder = await Attacker.join(trellis, shop);
});
afterAll(async () => {
  await flooder?.close();
  await trellis?.stop();
  await proxy?.stop();
});

/** Frames of authorizations that nobody has, 500 of them on their way at any time, until it is disposed of. */
function flood(): Disposable & { readonly fired: number } {
  const shot = flooder.shot(stock.id, "Stock.Count", "flood");
  const at = shot.bytes.findIndex((_, start) =>
    flooder.digest.every((byte, offset) => shot.bytes[start + offset] === byte),
  );
  let fired = 0;
  let open = true;
  const fire = () => {
    if (!open) return;
    fired += 1;
    const bytes = shot.bytes.slice();
    bytes.set(port.random(32), at);
    flooder.fire({ ...shot, bytes });
  };
  flooder.hear(shot.reply, fire);
  for (let count = 0; count < 500; count += 1) fire();
  return {
    get fired() {
      return fired;
    },
    [Symbol.dispose]: () => {
      open = false;
    },
  };
}

it("a caller that floods a provider with unknown authorizations keeps no new caller out", async () => {
  using flooding = flood();
  const newcomers = Array.from({ length: 20 }, async () => {
    const client = await trellis.client(shop);
    const counted = await client.rpc.stock.count("honest", { timeout: 20_000 });
    await client.close();
    return counted.isErr() ? counted.error.toSerializable() : counted.value;
  });
  expect(await Promise.all(newcomers)).toEqual(newcomers.map(() => 6));
  expect(flooding.fired).toBeGreaterThan(1_000);
  expect(provider.handled).toEqual(newcomers.map(() => "count honest"));
}, 120_000);
