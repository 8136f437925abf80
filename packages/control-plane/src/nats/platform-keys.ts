import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import type { Authenticator } from "@nats-io/nats-core";
import { decodeSeedNkey, encodePublicNkey, encodeSeedNkey, type NkeyKind } from "./nkeys.ts";

/** The broker's keys that the control plane holds. All secret: stored with mode 0600, never logged. */
export interface PlatformSeeds {
  /** User in SYS: monitoring, kicks. */
  readonly sys: string;
  /** User in AUTH: the callout responder. */
  readonly callout: string;
  /** User in CTL: authorizations and notices. */
  readonly ctl: string;
  /** User in APP, unrestricted: the platform's own APIs and streams. */
  readonly app: string;
  /** Account key that signs the callout's answers: whoever holds it can be any user of any account. */
  readonly issuer: string;
  /** Curve key: requests to the callout are sealed to it. */
  readonly xkey: string;
}

/** The public halves, all that the broker's configuration needs. */
export type PlatformPublicKeys = Readonly<Record<keyof PlatformSeeds, string>>;

const KINDS: Readonly<Record<keyof PlatformSeeds, NkeyKind>> = {
  sys: "user",
  callout: "user",
  ctl: "user",
  app: "user",
  issuer: "account",
  xkey: "curve",
};

export function newPlatformSeeds(random: (length: number) => Uint8Array = randomBytes): PlatformSeeds {
  const seed = (role: keyof PlatformSeeds) => encodeSeedNkey(KINDS[role], random(32));
  return {
    sys: seed("sys"),
    callout: seed("callout"),
    ctl: seed("ctl"),
    app: seed("app"),
    issuer: seed("issuer"),
    xkey: seed("xkey"),
  };
}

export function publicKeysOf(seeds: PlatformSeeds): PlatformPublicKeys {
  const key = (role: keyof PlatformSeeds) => publicNkeyOf(seeds[role], KINDS[role]);
  return {
    sys: key("sys"),
    callout: key("callout"),
    ctl: key("ctl"),
    app: key("app"),
    issuer: key("issuer"),
    xkey: key("xkey"),
  };
}

/** The public form that belongs to a seed of the given kind; throws (without the seed) when it is another. */
export function publicNkeyOf(seed: string, kind: NkeyKind): string {
  return encodePublicNkey(kind, publicBytes(secretKey(seed, kind)));
}

/**
 * Logs a static user in: signs the server's nonce. A connection made with it presents nothing else.
 */
export function nkeyAuthenticator(seed: string): Authenticator {
  const key = secretKey(seed, "user");
  const nkey = encodePublicNkey("user", publicBytes(key));
  return (nonce) => ({ nkey, sig: sign(null, Buffer.from(nonce ?? ""), key).toString("base64url") });
}

/** DER prefixes of a raw private key (RFC 8410). */
const PKCS8 = {
  ed25519: Buffer.from("302e020100300506032b657004220420", "hex"),
  x25519: Buffer.from("302e020100300506032b656e04220420", "hex"),
} as const;

function secretKey(text: string, kind: NkeyKind): KeyObject {
  const decoded = decodeSeedNkey(text);
  if (decoded === undefined || decoded.kind !== kind) throw new Error(`not the seed of a NATS ${kind} key`);
  const prefix = kind === "curve" ? PKCS8.x25519 : PKCS8.ed25519;
  return createPrivateKey({ key: Buffer.concat([prefix, decoded.seed]), format: "der", type: "pkcs8" });
}

function publicBytes(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32);
}
