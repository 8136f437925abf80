import { type Static, Type } from "typebox";
import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { concatBytes } from "../bytes/concat.ts";
import { writeU32 } from "../bytes/integers.ts";
import { transcript } from "../bytes/transcript.ts";
import type { ExchangeKey, Port } from "../port/port.ts";
import { CLOSED, EpochField, KeyField } from "./fields.ts";

/** The domain label of a sealed route key: of its key derivation and of its associated data. */
export const ROUTE_SEAL_LABEL = "trellis.route-seal.v1";

const NONCE_LENGTH = 12;
const KEY_LENGTH = 32;

/** A deployment's route key on its way to one replica, which alone can open it. */
export const SealedRouteKeySchema = Type.Object(
  {
    epoch: EpochField,
    /** The sender's one-time X25519 public key. */
    ephemeral: KeyField,
    nonce: Type.String({ pattern: "^[A-Za-z0-9_-]{16}$" }),
    /** AES-256-GCM of the 32 secret bytes: 48 bytes. */
    box: Type.String({ pattern: "^[A-Za-z0-9_-]{64}$" }),
  },
  CLOSED,
);

export type SealedRouteKey = Static<typeof SealedRouteKeySchema>;

export interface SealRouteKeyInput {
  /** The 32 secret bytes of the route's X25519 key. */
  readonly routeSecret: Uint8Array;
  readonly deployment: string;
  readonly epoch: number;
  /** Digest (text) of the authorization that the replica runs under. */
  readonly authorization: string;
  /** The replica's X25519 public key, from that authorization. */
  readonly exchangeKey: Uint8Array;
  /** Only for vectors: the sender's one-time secret and the nonce. Never give them otherwise. */
  readonly fixed?: { readonly ephemeral: Uint8Array; readonly nonce: Uint8Array };
}

/** Seals a route key to one replica, for one epoch and one authorization. */
export function sealRouteKey(port: Port, input: SealRouteKeyInput): SealedRouteKey {
  if (input.routeSecret.length !== KEY_LENGTH) throw new RangeError("A route secret is 32 bytes.");
  const ephemeral = port.x25519.keyPair(input.fixed?.ephemeral);
  const nonce = input.fixed?.nonce ?? port.random(NONCE_LENGTH);
  const shared = ephemeral.shared(input.exchangeKey);
  const key = sealKey(port, { shared, ephemeral: ephemeral.publicKey, receiver: input.exchangeKey });
  const box = port.aesGcm.seal({ key, nonce, data: input.routeSecret, associated: associatedData(input) });
  return {
    epoch: input.epoch,
    ephemeral: toBase64Url(ephemeral.publicKey),
    nonce: toBase64Url(nonce),
    box: toBase64Url(box),
  };
}

export interface OpenRouteKeyInput {
  readonly sealed: SealedRouteKey;
  readonly deployment: string;
  /** Digest (text) of this connection's authorization. */
  readonly authorization: string;
  /** This connection's exchange key. */
  readonly exchange: ExchangeKey;
}

/** The 32 secret bytes; `undefined` when it was sealed to someone or something else, or was changed. Never throws. */
export function openRouteKey(port: Port, input: OpenRouteKeyInput): Uint8Array | undefined {
  const { sealed, exchange, deployment, authorization } = input;
  const ephemeral = fromBase64Url(sealed.ephemeral);
  const nonce = fromBase64Url(sealed.nonce);
  const box = fromBase64Url(sealed.box);
  if (ephemeral?.length !== KEY_LENGTH || nonce?.length !== NONCE_LENGTH || box === undefined)
    return undefined;
  const shared = sharedSecret(exchange, ephemeral);
  if (shared === undefined) return undefined;
  const key = sealKey(port, { shared, ephemeral, receiver: exchange.publicKey });
  const associated = associatedData({ deployment, epoch: sealed.epoch, authorization });
  const secret = port.aesGcm.open({ key, nonce, data: box, associated });
  return secret?.length === KEY_LENGTH ? secret : undefined;
}

function sharedSecret(exchange: ExchangeKey, peer: Uint8Array): Uint8Array | undefined {
  try {
    return exchange.shared(peer);
  } catch {
    return undefined;
  }
}

/** Both public keys are in the salt, so that the key belongs to this pair and no other. */
function sealKey(
  port: Port,
  input: { shared: Uint8Array; ephemeral: Uint8Array; receiver: Uint8Array },
): Uint8Array {
  const salt = concatBytes(input.ephemeral, input.receiver);
  return port.hkdf({ secret: input.shared, salt, info: ROUTE_SEAL_LABEL, length: KEY_LENGTH });
}

function associatedData(input: { deployment: string; epoch: number; authorization: string }): Uint8Array {
  const epoch = new Uint8Array(4);
  writeU32(epoch, 0, input.epoch);
  return transcript(ROUTE_SEAL_LABEL, input.deployment, epoch, input.authorization);
}
