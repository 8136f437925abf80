import { randomBytes } from "node:crypto";
import nacl from "tweetnacl";
import { decodePublicNkey } from "../nats/nkeys.ts";

const magic = Buffer.from("xkv1");
const nonceLength = 24;
const bodyAt = magic.length + nonceLength;
const knownServerLimit = 64;

/**
 * NATS "xkey" encryption between the server and the callout: `xkv1`, a 24-byte nonce, a NaCl box.
 * The key agreement is the dear part (milliseconds in JavaScript), so that it is kept per server.
 */
export class SealedBox {
  readonly #secret: Uint8Array;
  readonly #shared = new Map<string, Uint8Array>();

  /** @param secret 32 raw bytes of the callout's X25519 secret. */
  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  /** The plain bytes of what a server sealed, or `undefined` when it was not sealed for us by that key. */
  open(sealed: Uint8Array, serverKey: string): Uint8Array | undefined {
    const shared = this.#sharedWith(serverKey);
    if (shared === undefined || sealed.length < bodyAt || !magic.equals(sealed.subarray(0, magic.length))) {
      return undefined;
    }
    const nonce = plain(sealed.subarray(magic.length, bodyAt));
    return nacl.box.open.after(plain(sealed.subarray(bodyAt)), nonce, shared) ?? undefined;
  }

  /** Seals an answer for a server. */
  seal(data: Uint8Array, serverKey: string): Uint8Array | undefined {
    const shared = this.#sharedWith(serverKey);
    if (shared === undefined) return undefined;
    const nonce = plain(randomBytes(nonceLength));
    return Buffer.concat([magic, nonce, nacl.box.after(plain(data), nonce, shared)]);
  }

  #sharedWith(serverKey: string): Uint8Array | undefined {
    const known = this.#shared.get(serverKey);
    if (known !== undefined) return known;
    const raw = decodePublicNkey("curve", serverKey);
    if (raw === undefined) return undefined;
    const shared = nacl.box.before(raw, this.#secret);
    if (this.#shared.size >= knownServerLimit) this.#shared.clear();
    this.#shared.set(serverKey, shared);
    return shared;
  }
}

/** tweetnacl checks for an exact Uint8Array, which a Buffer is not. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
