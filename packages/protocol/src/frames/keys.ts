import { concatBytes } from "../bytes/concat.ts";
import { writeU32 } from "../bytes/integers.ts";
import type { MacKey, Port } from "../port/port.ts";

/** The `info` text of a derivation: one key for each direction. */
export const REQUEST_KEY_INFO = "trellis.rpc.request-key.v1";
export const REPLY_KEY_INFO = "trellis.rpc.reply-key.v1";

export interface RpcKeys {
  /** Authenticates request and control frames. */
  readonly request: MacKey;
  /** Authenticates reply frames. */
  readonly reply: MacKey;
}

/**
 * The two MAC keys of a caller and a route. `shared` is X25519 of the caller's exchange key and the route key; the
 * salt is the authorization digest (32 bytes) and the route's epoch (u32), so that a refreshed authorization or a
 * rolled route has new keys. Derive once for each pair and keep them: each costs a scalar multiplication.
 */
export function deriveRpcKeys(
  port: Port,
  input: { shared: Uint8Array; digest: Uint8Array; epoch: number },
): RpcKeys {
  const epoch = new Uint8Array(4);
  writeU32(epoch, 0, input.epoch);
  const salt = concatBytes(input.digest, epoch);
  const derive = (info: string): MacKey =>
    port.macKey(port.hkdf({ secret: input.shared, salt, info, length: 32 }));
  return { request: derive(REQUEST_KEY_INFO), reply: derive(REPLY_KEY_INFO) };
}
