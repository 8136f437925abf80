import { gcm } from "@noble/ciphers/aes.js";
import { equalBytes, randomBytes } from "@noble/ciphers/utils.js";
import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { toBase64Url } from "../bytes/base64url.ts";
import { readUtf8, utf8Bytes, utf8Length, writeUtf8 } from "../bytes/utf8.ts";
import type { MacKey, Port } from "./port.ts";

class PortableMacKey implements MacKey {
  readonly kind = "mac-key";
  readonly #keyed: ReturnType<typeof hmac.create>;

  constructor(raw: Uint8Array) {
    this.#keyed = hmac.create(sha256, raw);
  }

  mac(first: Uint8Array, second: Uint8Array): Uint8Array {
    return this.#keyed.clone().update(first).update(second).digest();
  }
}

/**
 * The port in plain TypeScript, for browsers and tests. Same bytes as every other port, but 10 to 20 times slower
 * for signatures than a platform's own crypto.
 */
export const portablePort: Port = {
  sha256: (data) => sha256(data),
  sha256Text: (text) => toBase64Url(sha256(utf8Bytes(text))),
  sha256Stream() {
    const hash = sha256.create();
    return { update: (data) => void hash.update(data), digest: () => hash.digest() };
  },
  macKey: (raw) => new PortableMacKey(raw),
  mac(key, first, second) {
    if (!(key instanceof PortableMacKey)) throw new TypeError("This MAC key was made by another port.");
    return key.mac(first, second);
  },
  equal: (a, b) => a.length === b.length && equalBytes(a, b),
  hkdf: ({ secret, salt, info, length }) => hkdf(sha256, secret, salt, utf8Bytes(info), length),
  ed25519: {
    keyPair(given) {
      // The caller's array may be wiped or reused: keep our own copy.
      const seed = given === undefined ? randomBytes(32) : Uint8Array.from(given);
      return { seed, publicKey: ed25519.getPublicKey(seed), sign: (data) => ed25519.sign(data, seed) };
    },
    verify: verified,
    verifyLater: async (publicKey, data, signature) => verified(publicKey, data, signature),
  },
  x25519: {
    keyPair(given) {
      const secret = given === undefined ? randomBytes(32) : Uint8Array.from(given);
      return {
        secret,
        publicKey: x25519.getPublicKey(secret),
        shared: (peerPublic) => x25519.getSharedSecret(secret, peerPublic),
      };
    },
  },
  aesGcm: {
    seal: ({ key, nonce, data, associated }) => gcm(key, nonce, associated).encrypt(data),
    open({ key, nonce, data, associated }) {
      try {
        return gcm(key, nonce, associated).decrypt(data);
      } catch {
        return undefined;
      }
    },
  },
  random: (length) => randomBytes(length),
  utf8: { length: utf8Length, write: writeUtf8, read: readUtf8 },
};

function verified(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, data, publicKey, { zip215: false });
  } catch {
    return false;
  }
}
