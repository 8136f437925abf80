/** An HMAC-SHA-256 key that the platform has imported. Opaque: only the port that made it can use it. */
export interface MacKey {
  readonly kind: "mac-key";
}

/** An Ed25519 key pair. */
export interface SigningKey {
  /** The 32 secret bytes that everything else is derived from. */
  readonly seed: Uint8Array;
  readonly publicKey: Uint8Array;
  /** The 64-byte signature over the data (RFC 8032, pure Ed25519). */
  sign(data: Uint8Array): Uint8Array;
}

/** An X25519 key pair. */
export interface ExchangeKey {
  readonly secret: Uint8Array;
  readonly publicKey: Uint8Array;
  /**
   * The 32-byte shared secret with a peer's public key (RFC 7748). Throws when the peer's key is not 32 bytes or
   * is a point of small order, which would make the secret the same for everybody.
   */
  shared(peerPublic: Uint8Array): Uint8Array;
}

/** What AES-256-GCM needs; `seal` returns ciphertext and tag, and `open` takes the same as `data`. */
export interface SealInput {
  readonly key: Uint8Array;
  /** 12 bytes, never used twice with one key. */
  readonly nonce: Uint8Array;
  readonly data: Uint8Array;
  readonly associated: Uint8Array;
}

/** A SHA-256 over bytes that come in pieces. */
export interface HashStream {
  update(data: Uint8Array): void;
  /** The 32 bytes; call it once, at the end. */
  digest(): Uint8Array;
}

/** What HKDF-SHA-256 needs (RFC 5869). */
export interface DeriveInput {
  readonly secret: Uint8Array;
  readonly salt: Uint8Array;
  readonly info: string;
  readonly length: number;
}

/**
 * What the protocol needs from a platform: hashing, keys, randomness and text coding. Synchronous, because the
 * NATS authenticator and the frame path are. Two ports exist: one on the platform's own crypto for servers, and
 * `portablePort` for browsers and tests; both pass the same vectors.
 */
export interface Port {
  sha256(data: Uint8Array): Uint8Array;
  /** SHA-256 of the text's UTF-8, as base64url: 43 characters. */
  sha256Text(text: string): string;
  sha256Stream(): HashStream;
  /** Imports an HMAC-SHA-256 key once, so that each frame only pays for the hashing. */
  macKey(raw: Uint8Array): MacKey;
  /** HMAC-SHA-256 over the two parts, one after the other; 32 bytes. */
  mac(key: MacKey, first: Uint8Array, second: Uint8Array): Uint8Array;
  /** Compares in constant time; `false` when the lengths differ. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
  hkdf(input: DeriveInput): Uint8Array;
  readonly ed25519: {
    /** A key pair of the seed, or a fresh one. */
    keyPair(seed?: Uint8Array): SigningKey;
    /** `false` for a wrong signature and for keys or signatures of a wrong form; never throws. */
    verify(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean;
    /** The same off the main thread where the platform can: a verification takes as long as a hundred hashes. */
    verifyLater(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): Promise<boolean>;
  };
  readonly x25519: {
    /** A key pair of the secret, or a fresh one. */
    keyPair(secret?: Uint8Array): ExchangeKey;
  };
  readonly aesGcm: {
    seal(input: SealInput): Uint8Array;
    /** `undefined` when the key, the nonce, the associated data or the sealed bytes are not those that were sealed. */
    open(input: SealInput): Uint8Array | undefined;
  };
  /** Bytes from the platform's secure generator. */
  random(length: number): Uint8Array;
  readonly utf8: {
    /** How many bytes the text takes. */
    length(text: string): number;
    /** Writes the text at a position and returns how many bytes it took; the array must have room. */
    write(into: Uint8Array, text: string, at: number): number;
    /** Text of a range; throws when it is not valid UTF-8. A byte order mark is kept. */
    read(from: Uint8Array, start: number, end: number): string;
  };
}
