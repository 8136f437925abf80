import { describe, expect, it } from "vitest";
import { toBase64Url } from "../bytes/base64url.ts";
import { portablePort as port } from "../port/portable.ts";
import { openRouteKey, sealRouteKey } from "./sealed-route-key.ts";

const exchange = port.x25519.keyPair();
const routeSecret = port.random(32);
const seal = {
  routeSecret,
  deployment: "dep1",
  epoch: 3,
  authorization: "digest",
  exchangeKey: exchange.publicKey,
};
const place = { deployment: "dep1", authorization: "digest", exchange };

describe("a sealed route key", () => {
  it("opens for its replica, and is different each time", () => {
    const [one, two] = [sealRouteKey(port, seal), sealRouteKey(port, seal)];
    expect(openRouteKey(port, { ...place, sealed: one })).toEqual(routeSecret);
    expect(openRouteKey(port, { ...place, sealed: two })).toEqual(routeSecret);
    expect(one.box).not.toBe(two.box);
    expect(one.ephemeral).not.toBe(two.ephemeral);
  });

  it("opens for nobody else, nor for another deployment, epoch or authorization", () => {
    const sealed = sealRouteKey(port, seal);
    expect(openRouteKey(port, { ...place, sealed, exchange: port.x25519.keyPair() })).toBeUndefined();
    expect(openRouteKey(port, { ...place, sealed, deployment: "dep2" })).toBeUndefined();
    expect(openRouteKey(port, { ...place, sealed, authorization: "other" })).toBeUndefined();
    expect(openRouteKey(port, { ...place, sealed: { ...sealed, epoch: 4 } })).toBeUndefined();
  });

  it("does not open when anything was changed, and never throws", () => {
    const sealed = sealRouteKey(port, seal);
    const other = sealRouteKey(port, seal);
    for (const changed of [
      { ...sealed, box: other.box },
      { ...sealed, nonce: other.nonce },
      { ...sealed, ephemeral: other.ephemeral },
      { ...sealed, ephemeral: toBase64Url(new Uint8Array(32)) },
      { ...sealed, ephemeral: "x" },
      { ...sealed, nonce: "" },
      { ...sealed, box: "" },
      { ...sealed, box: "!" },
    ]) {
      expect(openRouteKey(port, { ...place, sealed: changed })).toBeUndefined();
    }
  });

  it("takes only a secret of 32 bytes", () => {
    expect(() => sealRouteKey(port, { ...seal, routeSecret: port.random(31) })).toThrow(RangeError);
  });
});
