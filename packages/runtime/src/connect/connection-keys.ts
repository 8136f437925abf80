import {
  type ExchangeKey,
  fromBase64Url,
  type Port,
  type SigningKey,
  TransportError,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";

/** The three key pairs of one connection. Only `identity` outlives the process. */
export interface ConnectionKeys {
  /** Durable: who is bootstrapping. */
  readonly identity: SigningKey;
  /** One connection: broker connect, event signatures, HTTP proofs. */
  readonly session: SigningKey;
  /** One connection: request authentication, sealed keys. */
  readonly exchange: ExchangeKey;
}

const seedLength = 32;

/** Makes fresh session and exchange keys beside the identity of `seed` (base64url of 32 bytes). */
export function createConnectionKeys(
  port: Port,
  seed: string | undefined,
  sessionSeed?: Uint8Array,
): Result<ConnectionKeys, TransportError> {
  const bytes = seed === undefined ? port.random(seedLength) : fromBase64Url(seed);
  if (bytes === undefined || bytes.length !== seedLength) {
    return err(
      new TransportError({
        code: "trellis.runtime.invalid_seed",
        message: "The instance seed is not base64url of 32 bytes.",
        hint: "Pass the seed that `trellis svc provision` printed, or set TRELLIS_SEED.",
      }),
    );
  }
  return ok({
    identity: port.ed25519.keyPair(bytes),
    session: port.ed25519.keyPair(sessionSeed ?? port.random(seedLength)),
    exchange: port.x25519.keyPair(),
  });
}
