import * as crypto from "node:crypto";
import type { MacKey, Port } from "@trellis/protocol";

const TAG_LENGTH = 16;
const POOL_LENGTH = 4096;
const POOLED = 64;

/** What comes before the 32 secret bytes in the PKCS #8 form of a private key (RFC 8410). */
const PKCS8 = {
  Ed25519: Buffer.from("302e020100300506032b657004220420", "hex"),
  X25519: Buffer.from("302e020100300506032b656e04220420", "hex"),
} as const;

type Curve = keyof typeof PKCS8;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

class NodeMacKey implements MacKey {
  readonly kind = "mac-key";
  /** A key object, not bytes: it cannot be logged by accident. */
  readonly #key: crypto.KeyObject;

  constructor(raw: Uint8Array) {
    this.#key = crypto.createSecretKey(raw);
  }

  mac(first: Uint8Array, second: Uint8Array): Uint8Array {
    return crypto.createHmac("sha256", this.#key).update(first).update(second).digest();
  }
}

/** Since Node 20.12: half the time of a hash object for the short inputs that we have. */
const hashAtOnce: Pick<Port, "sha256" | "sha256Text"> = {
  sha256: (data) => crypto.hash("sha256", data, "buffer"),
  sha256Text: (text) => crypto.hash("sha256", text, "base64url"),
};

const hashByObject: typeof hashAtOnce = {
  sha256: (data) => crypto.createHash("sha256").update(data).digest(),
  sha256Text: (text) => crypto.createHash("sha256").update(text, "utf8").digest("base64url"),
};

/** The port on the crypto of Node. */
export const nodePort: Port = {
  ...(typeof crypto.hash === "function" ? hashAtOnce : hashByObject),
  sha256Stream() {
    const hash = crypto.createHash("sha256");
    return { update: (data) => void hash.update(data), digest: () => hash.digest() };
  },
  macKey: (raw) => new NodeMacKey(raw),
  mac(key, first, second) {
    if (!(key instanceof NodeMacKey)) throw new TypeError("This MAC key was made by another port.");
    return key.mac(first, second);
  },
  equal: (a, b) => a.length === b.length && crypto.timingSafeEqual(a, b),
  hkdf: ({ secret, salt, info, length }) =>
    new Uint8Array(crypto.hkdfSync("sha256", secret, salt, info, length)),
  ed25519: {
    keyPair(given) {
      const { secret, publicKey, privateKey } = importPrivate("Ed25519", given);
      return { seed: secret, publicKey, sign: (data) => crypto.sign(null, data, privateKey) };
    },
    verify(publicKey, data, signature) {
      try {
        return crypto.verify(null, data, importOnce(publicKey), signature);
      } catch {
        return false;
      }
    },
    verifyLater,
  },
  x25519: {
    keyPair(given) {
      const { secret, publicKey, privateKey } = importPrivate("X25519", given);
      const shared = (peerPublic: Uint8Array): Uint8Array =>
        crypto.diffieHellman({ privateKey, publicKey: importPublic("X25519", peerPublic) });
      return { secret, publicKey, shared };
    },
  },
  aesGcm: { seal, open },
  random,
  utf8: {
    length: (text) => Buffer.byteLength(text, "utf8"),
    write: (into, text, at) => encoder.encodeInto(text, at === 0 ? into : into.subarray(at)).written,
    read: (from, start, end) => decoder.decode(from.subarray(start, end)),
  },
};

/** Keys by the very bytes that they are known as to their owner: a publisher signs often. */
const imported = new WeakMap<Uint8Array, crypto.KeyObject>();

function importOnce(raw: Uint8Array): crypto.KeyObject {
  const known = imported.get(raw);
  if (known !== undefined) return known;
  const key = importPublic("Ed25519", raw);
  imported.set(raw, key);
  return key;
}

/** On a thread of the platform's pool. */
function verifyLater(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      const key = importOnce(publicKey);
      crypto.verify(null, data, key, signature, (error, valid) => resolve(error === null && valid));
    } catch {
      resolve(false);
    }
  });
}

/** Through JWK, since Node takes a raw key in that form 17 times faster than in SPKI. */
function importPublic(curve: Curve, raw: Uint8Array): crypto.KeyObject {
  const x = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString("base64url");
  return crypto.createPublicKey({ key: { kty: "OKP", crv: curve, x }, format: "jwk" });
}

function importPrivate(
  curve: Curve,
  given: Uint8Array | undefined,
): { secret: Uint8Array; publicKey: Uint8Array; privateKey: crypto.KeyObject } {
  // The caller's array may be wiped or reused: keep our own copy.
  const secret = given === undefined ? new Uint8Array(crypto.randomBytes(32)) : Uint8Array.from(given);
  if (secret.length !== 32) throw new RangeError("A secret key is 32 bytes.");
  const der = Buffer.concat([PKCS8[curve], secret]);
  const privateKey = crypto.createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  der.fill(0);
  const { x = "" } = crypto.createPublicKey(privateKey).export({ format: "jwk" });
  return { secret, publicKey: new Uint8Array(Buffer.from(x, "base64url")), privateKey };
}

function seal(input: Parameters<Port["aesGcm"]["seal"]>[0]): Uint8Array {
  const cipher = crypto.createCipheriv("aes-256-gcm", input.key, input.nonce).setAAD(input.associated);
  return new Uint8Array(Buffer.concat([cipher.update(input.data), cipher.final(), cipher.getAuthTag()]));
}

function open(input: Parameters<Port["aesGcm"]["open"]>[0]): Uint8Array | undefined {
  const { key, nonce, data, associated } = input;
  const end = data.length - TAG_LENGTH;
  if (end < 0) return undefined;
  try {
    const cipher = crypto.createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH });
    cipher.setAAD(associated).setAuthTag(data.subarray(end));
    return new Uint8Array(Buffer.concat([cipher.update(data.subarray(0, end)), cipher.final()]));
  } catch {
    return undefined;
  }
}

const pool = new Uint8Array(POOL_LENGTH);
let taken = POOL_LENGTH;

/** Short values come from a pool that is filled at once: a request id would else cost 2 us. */
function random(length: number): Uint8Array {
  if (length > POOLED) return new Uint8Array(crypto.randomBytes(length));
  if (taken + length > POOL_LENGTH) {
    crypto.randomFillSync(pool);
    taken = 0;
  }
  const bytes = pool.slice(taken, taken + length);
  // What was given out is nobody else's business any more.
  pool.fill(0, taken, taken + length);
  taken += length;
  return bytes;
}
