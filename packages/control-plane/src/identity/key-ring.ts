import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Authenticator } from "@nats-io/nats-core";
import {
  type ExchangeKey,
  fromBase64Url,
  keyId,
  type Port,
  type SigningKey,
  toBase64Url,
  transcript,
} from "@trellis/protocol";
import { decodeSeedNkey } from "../nats/nkeys.ts";
import {
  nkeyAuthenticator,
  type PlatformPublicKeys,
  type PlatformSeeds,
  publicKeysOf,
  publicNkeyOf,
} from "../nats/platform-keys.ts";
import type { KeyFile } from "./key-file.ts";

/** The control plane's static users at the broker. */
export type BrokerUser = "sys" | "callout" | "ctl" | "app";

/** What the callout signs and opens with. */
export interface CalloutKeys {
  /** The `A...` text of the account key that answers are signed by. */
  issuer: string;
  issuerKey: KeyObject;
  /** Raw X25519 secret that the broker seals its questions for. */
  exchangeSecret: Uint8Array;
}

/** An issuer with its dates. */
export interface Issuer {
  id: string;
  publicKey: string;
  notBefore: number;
  expiresAt: number;
}

const redacted = "[secret keys]";

/**
 * All secrets of one control plane, in memory. Everything is held in private fields: logging, inspecting or
 * serialising a key ring shows none of them.
 */
export class KeyRing {
  readonly #port: Port;
  readonly #root: SigningKey;
  readonly #issuers: readonly { issuer: Issuer; key: SigningKey }[];
  readonly #routeMaster: Uint8Array;
  readonly #callout: CalloutKeys;
  readonly #seeds: PlatformSeeds;

  constructor(port: Port, file: KeyFile) {
    this.#port = port;
    this.#root = port.ed25519.keyPair(secret(file.root));
    this.#issuers = file.issuers.map(({ seed, notBefore, expiresAt }) => {
      const key = port.ed25519.keyPair(secret(seed));
      const publicKey = toBase64Url(key.publicKey);
      return { key, issuer: { id: keyId(port, key.publicKey), publicKey, notBefore, expiresAt } };
    });
    this.#routeMaster = secret(file.routeMaster);
    this.#callout = calloutKeys(file.nats);
    this.#seeds = file.nats;
  }

  get root(): SigningKey {
    return this.#root;
  }

  get callout(): CalloutKeys {
    return this.#callout;
  }

  get issuers(): readonly Issuer[] {
    return this.#issuers.map(({ issuer }) => issuer);
  }

  /** What the broker's configuration lists. */
  get brokerKeys(): PlatformPublicKeys {
    return publicKeysOf(this.#seeds);
  }

  /** Logs one of the static users in. */
  authenticator(user: BrokerUser): Authenticator {
    return nkeyAuthenticator(this.#seeds[user]);
  }

  /** The newest issuer that is valid now; statements are signed by it. */
  issuerAt(now: number): { issuer: Issuer; key: SigningKey } {
    const valid = this.#issuers.filter(({ issuer }) => issuer.notBefore <= now && now < issuer.expiresAt);
    const newest = valid[valid.length - 1];
    if (newest === undefined)
      throw new Error("No issuer key is valid now: rotate the issuers of this control plane.");
    return newest;
  }

  /** The route key of a deployment in an epoch: derived, never stored, the same in every control plane. */
  routeKey(deployment: string, epoch: number): ExchangeKey {
    const salt = transcript("trellis.route-key.v1", deployment, String(epoch));
    const derived = this.#port.hkdf({
      secret: this.#routeMaster,
      salt: this.#port.sha256(salt),
      info: "trellis.route-key.v1",
      length: 32,
    });
    return this.#port.x25519.keyPair(derived);
  }

  /** The platform's own identity: derived, the same in every control plane of these keys. */
  get platformSeed(): Uint8Array {
    const label = "trellis.platform-identity.v1";
    const salt = this.#port.sha256(transcript(label));
    return this.#port.hkdf({ secret: this.#routeMaster, salt, info: label, length: 32 });
  }

  /** Raw seed of the user by which the platform serves its own APIs; the broker lists its public half. */
  get appSeed(): Uint8Array {
    return rawSeed(this.#seeds.app);
  }

  toJSON(): string {
    return redacted;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return redacted;
  }
}

function calloutKeys(seeds: PlatformSeeds): CalloutKeys {
  const issuerSeed = rawSeed(seeds.issuer);
  // PKCS #8 of a raw Ed25519 seed (RFC 8410).
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), issuerSeed]);
  return {
    issuer: publicNkeyOf(seeds.issuer, "account"),
    issuerKey: createPrivateKey({ key: der, format: "der", type: "pkcs8" }),
    exchangeSecret: rawSeed(seeds.xkey),
  };
}

function rawSeed(text: string): Uint8Array {
  const decoded = decodeSeedNkey(text);
  if (decoded === undefined) throw new Error("The key file holds a broker key of a wrong form.");
  return decoded.seed;
}

function secret(text: string): Uint8Array {
  const bytes = fromBase64Url(text);
  if (bytes === undefined || bytes.length !== 32)
    throw new Error("The key file holds a key of a wrong length.");
  return bytes;
}
